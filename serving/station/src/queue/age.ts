// How long ago, in words that follow the clock.

import { signal } from "@preact/signals";
import { language } from "../words";

const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 20_000);

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

export function age(iso: string): string {
  const past = Math.min(0, Date.parse(iso) - now.value); // a server whose clock is ahead tells of no future
  const [unit, length] = UNITS.find(([, ms]) => -past >= ms) ?? UNITS[3];
  const format = new Intl.RelativeTimeFormat(language.value, { style: "narrow", numeric: "auto" });
  return format.format(Math.round(past / length), unit);
}
