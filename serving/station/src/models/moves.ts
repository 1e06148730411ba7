// Whether a figure went up or down by more than is worth a look, and where a bound stands against its margin.

export type Move = "up" | "down" | "same";

/** Half a point, of shares. */
const WORTH_A_LOOK = 0.005;

export function moved(before: number | null, after: number | null): Move {
  if (before === null || after === null || Math.abs(after - before) < WORTH_A_LOOK) return "same";
  return after > before ? "up" : "down";
}

/** The bar of a bound: shares of its width, where the whole stands for `MOST_MARGINS` margins. */
export interface BoundBar {
  bound: number;
  margin: number;
  /** It goes on beyond what is drawn. */
  isCut: boolean;
}

const MOST_MARGINS = 4;

export function boundBar(bound: number, margin: number): BoundBar {
  const most = MOST_MARGINS * margin;
  return { bound: Math.min(1, bound / most), margin: 1 / MOST_MARGINS, isCut: bound > most };
}
