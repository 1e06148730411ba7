// The part of a board that shows a defect with some of what is around it.

import type { Box } from "../types";

const LEAST_PX = 64;
const AROUND = 2;

/** A square, whole px, moved to lie on the board; cut only where the board is smaller. */
export function around(box: Box, image: { width: number; height: number }): Box {
  const side = Math.ceil(Math.max(LEAST_PX, AROUND * Math.max(box[2] - box[0], box[3] - box[1])));
  const [left, right] = within((box[0] + box[2]) / 2, side, image.width);
  const [top, bottom] = within((box[1] + box[3]) / 2, side, image.height);
  return [left, top, right, bottom];
}

function within(middle: number, side: number, size: number): [number, number] {
  if (side >= size) return [0, size];
  const start = Math.min(Math.max(0, Math.round(middle - side / 2)), size - side);
  return [start, start + side];
}
