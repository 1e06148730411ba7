// Places of calls, counted in square cells over the board.

import type { Spot } from "./types";

export interface Cell {
  column: number;
  row: number;
  count: number;
  /** The class most called there. */
  label: string;
}

export interface Grid {
  cell_px: number;
  /** The fullest first. */
  cells: Cell[];
}

const CELLS_ALONG = 40;

export function gridOf(spots: Spot[], size: { width: number; height: number }): Grid {
  const cell_px = Math.max(size.width, size.height) / CELLS_ALONG;
  const labels = new Map<string, Map<string, number>>();
  for (const spot of spots) {
    if (spot.x < 0 || spot.y < 0 || spot.x >= size.width || spot.y >= size.height) continue;
    const key = `${Math.floor(spot.x / cell_px)},${Math.floor(spot.y / cell_px)}`;
    const here = labels.get(key) ?? new Map<string, number>();
    labels.set(key, here.set(spot.label, (here.get(spot.label) ?? 0) + 1));
  }
  const cells = [...labels].map(([key, here]) => {
    const [column = 0, row = 0] = key.split(",").map(Number);
    const ranked = [...here].sort((one, other) => other[1] - one[1]);
    return { column, row, count: ranked.reduce((sum, [, n]) => sum + n, 0), label: ranked[0]?.[0] ?? "" };
  });
  cells.sort((one, other) => other.count - one.count || one.row - other.row || one.column - other.column);
  return { cell_px, cells };
}

/** Which of `steps` shades a count has: doubled counts are as far apart at the bottom as at the top. */
export function shade(count: number, most: number, steps: number): number {
  if (most <= 1) return steps - 1;
  return Math.min(steps - 1, Math.floor((Math.log2(count) / Math.log2(most)) * (steps - 1) + 1e-9));
}
