// Spans of time in words.

import { number, t } from "../words";

export function duration(seconds: number): string {
  if (seconds < 90) return t("jobs.seconds", { n: number(Math.round(seconds)) });
  const minutes = Math.round(seconds / 60);
  return minutes < 90
    ? t("jobs.minutes", { n: number(minutes) })
    : t("jobs.hours", { n: number(minutes / 60, 1) });
}
