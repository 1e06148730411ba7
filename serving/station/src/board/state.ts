// What the board page shows and what is chosen there: shared by the viewer and the panel beside it.

import { computed, signal } from "@preact/signals";
import type { Defect, Missed, Report } from "../types";

export type Tool = "look" | "box" | "polygon";

export const report = signal<Report | null>(null);
/** The chosen call, by its number. */
export const selected = signal<number | null>(null);
export const tool = signal<Tool>("look");
/** What was just drawn and has no class yet. */
export const drawn = signal<Omit<Missed, "label"> | null>(null);
/** The last clicked point of the board, px of the posted image. */
export const point = signal<{ x: number; y: number } | null>(null);

export const call = computed<Defect | null>(
  () => report.value?.defects.find((defect) => defect.id === selected.value) ?? null,
);
