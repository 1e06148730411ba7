// Every text of the station, in every language: one catalogue, in parts by page.

import { signal } from "@preact/signals";
import { board } from "./words/board";
import { figures } from "./words/figures";
import { inspect } from "./words/inspect";
import { lot } from "./words/lot";
import { queue } from "./words/queue";
import { recipes } from "./words/recipes";
import { review } from "./words/review";
import { shell } from "./words/shell";

export type Language = "en" | "zh";
export const LANGUAGES: Record<Language, string> = { en: "English", zh: "中文" };

const catalogue = {
  en: { ...shell.en, ...queue.en, ...board.en, ...review.en, ...inspect.en, ...recipes.en, ...figures.en, ...lot.en },
  zh: { ...shell.zh, ...queue.zh, ...board.zh, ...review.zh, ...inspect.zh, ...recipes.zh, ...figures.zh, ...lot.zh },
} as const;

export type Key = keyof typeof catalogue.en;
type Values = Record<string, string | number>;

const KEPT = "station.language";

export const language = signal<Language>(firstLanguage());

/** The text of `key` in the language in use, its {names} replaced. Reading it in a component follows the language. */
export function t(key: Key, values: Values = {}): string {
  return catalogue[language.value][key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
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
