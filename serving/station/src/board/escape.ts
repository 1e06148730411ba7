// Which drawn defect is asked about.

import { computed, signal } from "@preact/signals";
import type { Box, Missed } from "../types";
import { review } from "./review";
import { boxAround } from "./spot";
import { grid, point, report } from "./state";

/** Number of the chosen one in the review's list. */
export const missedAt = signal<number | null>(null);

export const chosenMissed = computed<Missed | null>(() =>
  missedAt.value === null ? null : (review.value?.missed[missedAt.value] ?? null),
);

export function chooseMissed(at: number | null): void {
  missedAt.value = at;
  if (at !== null) point.value = null;
}

export function spotAddress(missed: Missed): string {
  const { width, height } = grid.value!;
  return `/v1/inspections/${report.value!.id}/spot?box=${boxAround(missed, width, height).join(",")}`;
}

/** The drawn defect under a point of the board; the smallest where several are. */
export function hitMissed(x: number, y: number): number | null {
  const { width, height } = grid.value!;
  const hits = (review.value?.missed ?? [])
    .map((missed, at) => ({ at, box: boxAround(missed, width, height) }))
    .filter(({ box: [left, top, right, bottom] }) => x >= left && x <= right && y >= top && y <= bottom)
    .sort((one, other) => area(one.box) - area(other.box));
  return hits[0]?.at ?? null;
}

function area([left, top, right, bottom]: Box): number {
  return (right - left) * (bottom - top);
}
