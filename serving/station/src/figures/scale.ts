// From values to places on a plot, and the values that are written beside it.

/** Round steps from 0 or above to `top` or above: at most `most` of them. */
export function ticks(bottom: number, top: number, most = 5): number[] {
  const reach = top - bottom;
  if (!(reach > 0)) return [bottom];
  const rough = reach / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * (1 - 1e-9))!;
  const first = Math.ceil(bottom / step - 1e-9);
  const last = Math.floor(top / step + 1e-9);
  // Counted in whole steps: sums of 0.1 drift.
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** The least round number that all of `values` stay below; 1 where there is nothing above 0. */
export function roof(values: number[]): number {
  const top = Math.max(0, ...values);
  if (top === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(top));
  return Number(([1, 1.5, 2, 3, 5, 7.5, 10].find((one) => one * power >= top)! * power).toPrecision(12));
}

/** A share's axis: from a round share below all values to 1. */
export function floorOfShares(values: number[]): number {
  const least = Math.min(1, ...values);
  return [0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.4, 0.2].find((one) => one <= least - (1 - least) * 0.05) ?? 0;
}

export function linear(from: [number, number], to: [number, number]): (value: number) => number {
  const factor = from[1] === from[0] ? 0 : (to[1] - to[0]) / (from[1] - from[0]);
  return (value) => to[0] + (value - from[0]) * factor;
}

/** Points of a line, broken where a value is missing. */
export function runs<T>(points: T[], isThere: (point: T) => boolean): T[][] {
  const found: T[][] = [[]];
  for (const point of points) {
    if (isThere(point)) found.at(-1)!.push(point);
    else if (found.at(-1)!.length > 0) found.push([]);
  }
  return found.filter((run) => run.length > 0);
}
