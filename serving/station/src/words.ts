// Every text of the station, in every language: one catalogue, in parts by page.

import { signal } from "@preact/signals";
import { board } from "./words/board";
import { escape } from "./words/escape";
import { figures } from "./words/figures";
import { filled, type Values } from "./words/filled";
import { inspect } from "./words/inspect";
import { lot } from "./words/lot";
import { models } from "./words/models";
import { queue } from "./words/queue";
import { recipes } from "./words/recipes";
import { retrain } from "./words/retrain";
import { review } from "./words/review";
import { inChinese } from "./words/server";
import { shell } from "./words/shell";

export type Language = "en" | "zh";
export const LANGUAGES: Record<Language, string> = { en: "English", zh: "中文" };

const work = { en: { ...queue.en, ...board.en, ...review.en, ...escape.en }, zh: { ...queue.zh, ...board.zh, ...review.zh, ...escape.zh } };
const engineering = {
  en: { ...recipes.en, ...figures.en, ...lot.en, ...models.en, ...retrain.en },
  zh: { ...recipes.zh, ...figures.zh, ...lot.zh, ...models.zh, ...retrain.zh },
};
const catalogue = {
  en: { ...shell.en, ...work.en, ...inspect.en, ...engineering.en },
  zh: { ...shell.zh, ...work.zh, ...inspect.zh, ...engineering.zh },
} as const;

export type Key = keyof typeof catalogue.en;

const KEPT = "station.language";

export const language = signal<Language>(firstLanguage());

/** The text of `key` in the language in use, its {names} replaced. Reading it in a component follows the language. */
export function t(key: Key, values: Values = {}): string {
  return filled(catalogue[language.value][key], values);
}

/** What the service says in English, in the language in use where it is known there. */
export function told(text: string): string {
  return language.value === "zh" ? inChinese(text) : text;
}

export function chooseLanguage(chosen: Language): void {
  language.value = chosen;
  localStorage.setItem(KEPT, chosen);
  document.documentElement.lang = chosen;
}

/** A number or date as this language writes it. */
export function number(value: number, digits = 0): string {
  return value.toLocaleString(language.value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function time(iso: string): string {
  return new Date(iso).toLocaleString(language.value, { dateStyle: "short", timeStyle: "medium" });
}

function firstLanguage(): Language {
  const kept = localStorage.getItem(KEPT);
  const first: Language = kept === "en" || kept === "zh" ? kept : navigator.language.startsWith("zh") ? "zh" : "en";
  document.documentElement.lang = first;
  return first;
}
