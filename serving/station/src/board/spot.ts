// What the network made of one place of the board, as the service sends it, and what follows from it.

import type { Box, Missed } from "../types";

export interface Spot {
  inspection: string;
  box_xyxy: Box;
  /** The class nearest to its threshold there. */
  label: string;
  /** `needed`: the highest threshold with which it would have been called; null: none of use. */
  classes: { label: string; score: number; threshold: number; needed: number | null }[];
  gate_share: Record<Level, number>;
  /** `attention` 1: as anywhere else. `removed`: the score without what the level says. */
  levels: { level: Level; attention: number; removed: number }[];
  difference: number | null;
  words: string[];
  offers: ("example" | "class" | "threshold")[];
}

type Level = "4" | "16" | "32";

/** Whole px around what was drawn, on the board. */
export function boxAround({ box_xyxy: box, polygon }: Pick<Missed, "box_xyxy" | "polygon">, width: number, height: number): Box {
  const xs = box ? [box[0], box[2]] : (polygon ?? []).map(([x]) => x);
  const ys = box ? [box[1], box[3]] : (polygon ?? []).map(([, y]) => y);
  const [left, right] = span(xs, width);
  const [top, bottom] = span(ys, height);
  return [left, top, right, bottom];
}

function span(values: number[], most: number): [number, number] {
  const first = Math.min(Math.max(0, Math.floor(Math.min(...values))), most - 1);
  return [first, Math.max(first + 1, Math.min(most, Math.ceil(Math.max(...values))))];
}

/** The class whose threshold would have to be lowered: the one that was drawn where the model knows it. */
export function proposal({ classes, label }: Spot, drawn: string): Spot["classes"][number] | null {
  const possible = classes.filter(({ needed, threshold }) => needed !== null && needed < threshold);
  return [drawn, label].map((name) => possible.find((one) => one.label === name)).find(Boolean) ?? possible[0] ?? null;
}
