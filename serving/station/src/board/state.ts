// What the board page shows and what is chosen there: shared by the viewer and the panel beside it.

import { batch, computed, signal } from "@preact/signals";
import { request } from "../api";
import type { Box, Defect, Missed, Report } from "../types";
import type { Grid, TileViewer, View } from "./viewer";

export type Tool = "look" | "box" | "polygon";
/** How the board stands against its reference on the stage. */
export type Mode = "board" | "blink" | "side" | "swipe" | "difference";
export const MODES: Mode[] = ["board", "blink", "side", "swipe", "difference"];
export const LEVELS = ["4", "16", "32"] as const;
export type Level = (typeof LEVELS)[number];
export type Overlay = "defect_map" | `attention_${Level}` | "gate";

export const report = signal<Report | null>(null);
export const grid = signal<Grid | null>(null);
/** The chosen call, by its number. */
export const selected = signal<number | null>(null);
export const tool = signal<Tool>("look");
/** What was just drawn and has no class yet. */
export const drawn = signal<Omit<Missed, "label"> | null>(null);
/** The last clicked point of the board, px of the posted image. */
export const point = signal<{ x: number; y: number } | null>(null);

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
export const mode = signal<Mode>(reducedMotion ? "side" : "blink");
export const isBlinkPaused = signal(false);
export const overlay = signal<Overlay | null>(null);
export const opacity = signal(0.8);
/** The defect map of one class alone; "": of all. */
export const mapLabel = signal("");
export const areBoxesShown = signal(true);
/** While held: the board alone. */
export const isBare = signal(false);
/** Whether it is shown what the network looked at for the chosen call or point. */
export const isLookedAt = signal(false);
/** The view that keys move; null while none is open. */
export const stage = signal<TileViewer | null>(null);
/** Whether the first view of the board is on the screen; what can wait is asked for after it. */
export const isSeen = signal(false);
export const view = signal<View>({ scale: 1, x: 0, y: 0 });
/** Where the swipe's divider stands, share of the stage's width. */
export const divider = signal(0.5);

export const call = computed<Defect | null>(
  () => report.value?.defects.find((defect) => defect.id === selected.value) ?? null,
);
/** Why the reference cannot be laid under this board; empty: it can, as far as is known. */
export const referenceFault = signal("");
export const hasReference = computed(() => report.value?.links.reference != null && !referenceFault.value);
/** What the stage can and does show: without a reference, the board alone. */
export const shownMode = computed<Mode>(() => (hasReference.value ? mode.value : "board"));

/** Classes of this board's calls. */
export const calledLabels = computed<string[]>(() => [
  ...new Set(report.value?.defects.map((defect) => defect.label) ?? []),
]);

/** Throws ApiError, in words. */
export async function openBoard(id: string, options: RequestInit): Promise<void> {
  close();
  const base = `/v1/inspections/${encodeURIComponent(id)}`;
  const [found, tiles] = await Promise.all([
    request<Report>(base, options),
    request<Grid>(`${base}/tiles/image`, options),
  ]);
  batch(() => {
    report.value = found;
    grid.value = tiles;
    isBlinkPaused.value = found.defects.length === 0; // a board without calls is calm until one asks
    selected.value ??= found.defects[0]?.id ?? null;
  });
}

export function close(): void {
  batch(() => {
    const shown: { value: unknown }[] = [report, grid, selected, drawn, point, overlay];
    for (const one of shown) one.value = null;
    tool.value = "look";
    mapLabel.value = referenceFault.value = "";
    isBare.value = isLookedAt.value = isSeen.value = false;
    areBoxesShown.value = true;
  });
}

/** Attention must not lead the eye: what was shown of one call is not shown of the next unasked. */
export function forgetAttention(): void {
  batch(() => {
    if (overlay.peek()?.startsWith("attention")) overlay.value = null;
    isLookedAt.value = false;
  });
}

/** Overlays lie on the board itself: modes that cover it give way, and the other way round. */
export function chooseOverlay(chosen: Overlay | null): void {
  batch(() => {
    overlay.value = chosen;
    if (chosen && mode.value !== "side") mode.value = "board";
  });
}

export function chooseMode(chosen: Mode): void {
  batch(() => {
    mode.value = chosen;
    if (chosen !== "board" && chosen !== "side") overlay.value = null;
  });
}

/** A square around a box, whole px, on the board; at least `least` px a side where the board has them. */
export function squareAround([left, top, right, bottom]: Box, least: number, within: Grid): Box {
  const side = Math.ceil(Math.max(least, 1.6 * (right - left), 1.6 * (bottom - top)));
  const across = Math.min(side, within.width);
  const down = Math.min(side, within.height);
  const x = Math.round(Math.min(Math.max((left + right - across) / 2, 0), within.width - across));
  const y = Math.round(Math.min(Math.max((top + bottom - down) / 2, 0), within.height - down));
  return [x, y, x + across, y + down];
}
