// Which span of time is looked at: chosen by name, kept in the address.

export const PERIODS = ["today", "shift", "7d", "30d", "free"] as const;
export type Period = (typeof PERIODS)[number];

export interface Span {
  since: Date;
  /** null: until now. */
  until: Date | null;
}

/** Shifts begin at 6, 14 and 22 o'clock where the browser is. */
export const SHIFT_HOURS = [6, 14, 22];
const DAY_MS = 86_400_000;
const LONGEST_BY_HOUR_DAYS = 3;

/** The span of a query, {period, since, until}. A free span without a first day has seven; days are whole, local ones. */
export function spanOf(query: URLSearchParams, now: Date): Span {
  const period = periodOf(query);
  if (period === "shift") return { since: shiftStart(now), until: null };
  if (period === "today") return { since: midnight(now, 0), until: null };
  if (period !== "free") return { since: midnight(now, period === "7d" ? -6 : -29), until: null };
  const first = dayOf(query.get("since")) ?? midnight(now, -6);
  const last = dayOf(query.get("until"));
  return { since: first, until: last && last >= first ? midnight(last, 1) : null };
}

export function periodOf(query: URLSearchParams): Period {
  const asked = query.get("period");
  return PERIODS.find((one) => one === asked) ?? "7d";
}

export function bucketOf(span: Span, now: Date): "hour" | "day" {
  const days = ((span.until ?? now).getTime() - span.since.getTime()) / DAY_MS;
  return days <= LONGEST_BY_HOUR_DAYS ? "hour" : "day";
}

export function shiftStart(now: Date): Date {
  const start = new Date(now);
  const hour = SHIFT_HOURS.findLast((one) => one <= now.getHours());
  start.setHours(hour ?? SHIFT_HOURS.at(-1)! - 24, 0, 0, 0);
  return start;
}

/** 2026-11-30 of a local day, as date fields spell it. */
export function dayText(day: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

function dayOf(text: string | null): Date | null {
  if (!text || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const day = new Date(`${text}T00:00:00`);
  return Number.isNaN(day.getTime()) ? null : day;
}

function midnight(day: Date, plusDays: number): Date {
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + plusDays);
}
