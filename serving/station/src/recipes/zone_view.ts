// Which part of the golden reference is on the screen.

import { computed, signal } from "@preact/signals";
import type { Point } from "./wire";

const LARGEST = 40; // screen px per px of the reference
const MARGIN_PX = 16;

export const picture = signal({ width: 1, height: 1 });
export const stage = signal({ width: 1, height: 1 });
/** Middle of the view in px of the reference, and screen px per px of the reference. */
const view = signal<{ x: number; y: number; scale: number } | null>(null);

const fitting = computed(() => {
  const { width, height } = stage.value;
  const room = [(width - 2 * MARGIN_PX) / picture.value.width, (height - 2 * MARGIN_PX) / picture.value.height];
  const scale = Math.max(1e-3, Math.min(...room));
  return { x: picture.value.width / 2, y: picture.value.height / 2, scale };
});
const shown = computed(() => view.value ?? fitting.value);
export const scale = computed(() => shown.value.scale);

export const viewBox = computed(() => {
  const { x, y, scale } = shown.value;
  const [width, height] = [stage.value.width / scale, stage.value.height / scale];
  return [x - width / 2, y - height / 2, width, height];
});

export function fit(): void {
  view.value = null;
}

export function zoom(factor: number, about: Point = [shown.value.x, shown.value.y]): void {
  const { x, y, scale } = shown.value;
  const next = Math.min(LARGEST, Math.max(fitting.value.scale / 2, scale * factor));
  const keep = scale / next; // `about` stays where it is on the screen
  view.value = { x: about[0] + (x - about[0]) * keep, y: about[1] + (y - about[1]) * keep, scale: next };
}

/** By screen px. */
export function pan(dx: number, dy: number): void {
  const { x, y, scale } = shown.value;
  view.value = { x: x - dx / scale, y: y - dy / scale, scale };
}

/** From screen px within the stage to px of the reference. */
export function toPicture(x: number, y: number): Point {
  const [left, top] = viewBox.value as [number, number, number, number];
  return [left + x / scale.value, top + y / scale.value];
}
