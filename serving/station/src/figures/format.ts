// Numbers as the language in use writes them; a figure that cannot be given is a dash.

import { language, number, t } from "../words";

export const NONE = "\u2013";

export function percent(share: number | null, digits = 1): string {
  if (share === null) return NONE;
  return share.toLocaleString(language.value, {
    style: "percent",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** To three figures, whole above a hundred. */
export function figure(value: number | null): string {
  if (value === null) return NONE;
  if (value >= 100 || value === 0) return number(value);
  return value.toLocaleString(language.value, { maximumSignificantDigits: 3 });
}

/** The start of a bucket; days are counted in UTC. */
export function moment(iso: string, bucket: "hour" | "day"): string {
  const options: Intl.DateTimeFormatOptions = { month: "short", day: "numeric" };
  if (bucket === "day") options.timeZone = "UTC";
  else Object.assign(options, { hour: "2-digit", minute: "2-digit", hour12: false });
  return new Date(iso).toLocaleString(language.value, options);
}

/** From the first to the last day of a span that ends before `until`. */
export function days(since: Date, until: Date): string {
  const [lower, upper] = [day(since), day(new Date(until.getTime() - 1))];
  return lower === upper ? lower : t("figures.range", { lower, upper });
}

export function day(when: Date): string {
  return when.toLocaleDateString(language.value, { dateStyle: "medium" });
}

export function minute(iso: string): string {
  return new Date(iso).toLocaleString(language.value, { dateStyle: "short", timeStyle: "short" });
}
