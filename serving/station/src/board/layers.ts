// What can lie over the board: addresses of tiles, crops and legends, and whether an overlay can be believed.

import { computed } from "@preact/signals";
import { address, request } from "../api";
import type { Box } from "../types";
import { call, mapLabel, overlay, point, report, shownMode, type Overlay } from "./state";
import type { Tiles } from "./viewer";

export type Layer = "image" | "reference" | "difference" | Overlay;
type Query = Record<string, string | number | null>;

export interface Legend {
  stops: { value: number; rgba: [number, number, number, number]; name: string }[];
  threshold: number | null;
  unit: string;
}

export interface Evidence {
  score: number;
  score_without: number;
  score_without_random: number;
  reliable: boolean;
}

export function isAttention(layer: Layer | null): boolean {
  return layer?.startsWith("attention") ?? false;
}

/** Of what attention is asked: the clicked point, else the chosen call, else all of the board. */
export function subject(): Query {
  if (point.value) return { x: Math.floor(point.value.x), y: Math.floor(point.value.y) };
  return call.value ? { defect: call.value.id } : {};
}

function queryOf(layer: Layer): Query {
  if (isAttention(layer)) return subject();
  return layer === "defect_map" ? { label: mapLabel.value } : {};
}

function base(): string {
  return `/v1/inspections/${report.value?.id ?? ""}`;
}

export function tilesOf(layer: Layer): Tiles {
  const isClear = !["image", "reference", "difference"].includes(layer);
  return { path: `${base()}/tiles/${layer}`, query: address("", queryOf(layer)), isClear };
}

/** size: px of the longer side on the screen. */
export function cropOf(layer: Layer, box: Box, size: number): string {
  const drawnPx = Math.round(size * Math.min(devicePixelRatio, 2));
  return address(`${base()}/crops/${layer}`, { box: box.join(","), size: drawnPx, ...queryOf(layer) });
}

/** The layer whose colours need words, if any. */
export const explained = computed<Layer | null>(() =>
  shownMode.value === "difference" ? "difference" : overlay.value,
);

const legends = new Map<string, Promise<Legend>>();

/** The legend of a layer; asked once a board and class. Rejects with ApiError. */
export function legendOf(layer: Layer, label = ""): Promise<Legend> {
  const url = address(`${base()}/legend/${layer}`, { label });
  let found = legends.get(url);
  if (!found) {
    found = request<Legend>(url);
    found.catch(() => legends.delete(url));
    legends.set(url, found);
  }
  return found;
}

/** Whether a map says something of a call; null: there was nothing to test. Rejects with ApiError. */
export async function evidenceOf(map: Overlay, defect: number, stop: AbortSignal): Promise<Evidence | null> {
  const url = address(`${base()}/evidence`, { map, defect });
  const { maps } = await request<{ maps: Evidence[] }>(url, { signal: stop });
  return maps[0] ?? null;
}
