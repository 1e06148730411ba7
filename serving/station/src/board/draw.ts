// Drawing what was missed: a box or a polygon becomes a shape in px of the board.

import type { Box, Missed } from "../types";
import type { Grid } from "./viewer";

export type Corner = [number, number];
export type Shape = Omit<Missed, "label">;

/** Smaller is a slip of the hand, px of the board. */
const LEAST_PX = 2;
/** The service takes no more. */
export const MOST_CORNERS = 500;

export function within([x, y]: Corner, { width, height }: Grid): Corner {
  return [tenth(Math.min(Math.max(x, 0), width)), tenth(Math.min(Math.max(y, 0), height))];
}

/** The box between two corners; null where it is too small to be meant. */
export function boxOf([x, y]: Corner, [u, v]: Corner): Shape | null {
  const box: Box = [Math.min(x, u), Math.min(y, v), Math.max(x, u), Math.max(y, v)];
  return box[2] - box[0] < LEAST_PX || box[3] - box[1] < LEAST_PX ? null : { box_xyxy: box, polygon: null };
}

/** null where the corners span no area. */
export function polygonOf(corners: Corner[]): Shape | null {
  const kept = corners.filter((corner, index) => index === 0 || !isSame(corner, corners[index - 1]!));
  return kept.length < 3 || area(kept) < LEAST_PX ** 2 ? null : { box_xyxy: null, polygon: kept };
}

function isSame(one: Corner, other: Corner): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

/** Shoelace formula. */
function area(corners: Corner[]): number {
  const twice = corners.reduce((sum, [x, y], index) => {
    const [u, v] = corners[(index + 1) % corners.length]!;
    return sum + x * v - u * y;
  }, 0);
  return Math.abs(twice) / 2;
}

function tenth(value: number): number {
  return Math.round(10 * value) / 10;
}
