// Which curves there are in what a training writes down.

import type { CurvePoint } from "./wire";

export interface Term {
  name: string;
  points: { step: number; value: number }[];
}

const MOST_TERMS = 6;
/** What tells where a training is, not how well it does. */
const NO_TERMS = new Set(["step", "epoch", "seconds", "time", "learning_rate", "lr", "grad_norm"]);

/** Each number that is there at more than one step; the sum first, then the largest. */
export function terms(points: CurvePoint[]): Term[] {
  const found = new Map<string, Term>();
  for (const point of points) {
    for (const [name, value] of Object.entries(point)) {
      if (NO_TERMS.has(name) || typeof value !== "number" || !Number.isFinite(value)) continue;
      if (!found.has(name)) found.set(name, { name, points: [] });
      found.get(name)!.points.push({ step: point.step, value });
    }
  }
  const isSum = ({ name }: Term) => Number(name === "loss" || name === "total");
  const largest = ({ points: run }: Term) => Math.max(...run.map(({ value }) => value));
  return [...found.values()]
    .filter(({ points: run }) => run.length > 1)
    .sort((one, other) => isSum(other) - isSum(one) || largest(other) - largest(one))
    .slice(0, MOST_TERMS);
}

/** Losses fall through decades; what lies more than these below the highest is drawn at the floor. */
const DECADES = 2.5;

export interface LogScale {
  /** 0 at the floor, 1 at the highest value. */
  at: (value: number) => number;
  /** Powers of ten between the two. */
  ticks: number[];
}

export function logScale(values: number[]): LogScale {
  const top = Math.max(0, ...values);
  if (top === 0) return { at: () => 0, ticks: [] };
  const high = Math.log10(top);
  const low = high - DECADES;
  const powers = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, index) => Math.ceil(low) + index);
  return {
    at: (value) => (value <= 0 ? 0 : Math.min(1, Math.max(0, (Math.log10(value) - low) / DECADES))),
    ticks: powers.map((power) => Number((10 ** power).toPrecision(1))),
  };
}

/** At most one point a px; the last is kept. */
export function thinned<T>(run: T[], width: number): T[] {
  const every = Math.max(1, Math.ceil(run.length / width));
  return run.filter((_, index) => index % every === 0 || index === run.length - 1);
}
