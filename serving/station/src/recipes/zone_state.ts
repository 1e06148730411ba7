// The zone editor: which tool is in hand, which zone is chosen, and what is done to it.

import { computed, signal } from "@preact/signals";
import { change, draft } from "./draft";
import { areaOf, faultOf, MAX_ZONES, moved, type Fault } from "./geometry";
import type { Point, Zone } from "./wire";

export type Kind = "ignore" | "regions";
export type Tool = "select" | "rectangle" | "polygon";
export interface Chosen {
  kind: Kind;
  index: number;
}

export const tool = signal<Tool>("select");
/** What a new zone is. */
export const kind = signal<Kind>("ignore");
export const chosen = signal<Chosen | null>(null);
/** The chosen corner of the chosen zone. */
export const corner = signal<number | null>(null);
/** Corners of what is being drawn. */
export const drawing = signal<Point[]>([]);
/** Why the last polygon was not taken: a key of the catalogue. */
export const refused = signal<Fault | null>(null);

/** A zone that is gone meanwhile, by undo as an example, is not chosen. */
export const chosenZone = computed<Zone | null>(() => {
  const at = chosen.value;
  return at ? (draft.value[at.kind][at.index] ?? null) : null;
});

// Looked up at every drawing: each polygon is tested once.
const faults = new WeakMap<Point[], Fault | null>();

export function zoneFault({ polygon }: Zone): Fault | null {
  if (!faults.has(polygon)) faults.set(polygon, faultOf(polygon));
  return faults.get(polygon) ?? null;
}

/** Corners that are typed one by one may cross on the way; what crosses in the end cannot be stored. */
export const isFaulty = computed(() => [...draft.value.ignore, ...draft.value.regions].some(zoneFault));

export function choose(at: Chosen | null): void {
  chosen.value = at;
  corner.value = null;
  refused.value = null;
}

export function takeTool(taken: Tool): void {
  tool.value = taken;
  drawing.value = [];
  refused.value = null;
  if (taken !== "select") choose(null);
}

export function cancelDrawing(): void {
  if (drawing.value.length) drawing.value = [];
  else if (tool.value !== "select") takeTool("select");
  else choose(null);
}

/** Take what was drawn as a new zone; false, with the cause in `refused`, when it cannot be one. */
export function addZone(polygon: Point[]): boolean {
  drawing.value = [];
  const zones = draft.value[kind.value];
  refused.value = zones.length >= MAX_ZONES ? "recipes.zones.many" : faultOf(polygon);
  if (refused.value) return false;
  change({ [kind.value]: [...zones, { name: "", polygon }] });
  tool.value = "select";
  chosen.value = { kind: kind.value, index: zones.length };
  corner.value = null;
  return true;
}

export function setPolygon(polygon: Point[], tag = ""): boolean {
  refused.value = faultOf(polygon);
  if (!refused.value) replace({ polygon }, tag);
  return refused.value === null;
}

/** Corners as they are typed: taken even while they make no zone, which `refused` then says. */
export function typePolygon(polygon: Point[]): void {
  refused.value = faultOf(polygon);
  replace({ polygon }, "corner");
}

export function rename(name: string): void {
  replace({ name }, "zone name");
}

export function removeChosen(): void {
  const at = chosen.value;
  const zone = chosenZone.value;
  if (!at || !zone) return;
  if (corner.value !== null && zone.polygon.length > 3) {
    if (setPolygon(zone.polygon.filter((_, index) => index !== corner.value))) corner.value = null;
    return;
  }
  change({ [at.kind]: draft.value[at.kind].filter((_, index) => index !== at.index) });
  choose(null);
}

/** Make an ignore zone a region of interest, or the other way round. */
export function turnInto(into: Kind): void {
  const at = chosen.value;
  const zone = chosenZone.value;
  if (!at || !zone || at.kind === into) return;
  change({
    [at.kind]: draft.value[at.kind].filter((_, index) => index !== at.index),
    [into]: [...draft.value[into], zone],
  });
  choose({ kind: into, index: draft.value[into].length - 1 });
}

export function nudge(dx: number, dy: number): void {
  const zone = chosenZone.value;
  if (!zone) return;
  const at = corner.value;
  if (at === null) return void setPolygon(moved(zone.polygon, dx, dy), "nudge");
  const [point] = moved([zone.polygon[at]!], dx, dy);
  setPolygon(zone.polygon.with(at, point!), "nudge");
}

export function chooseNext(step: number): void {
  const all = (["ignore", "regions"] as const).flatMap((of) => draft.value[of].map((_, index) => ({ kind: of, index })));
  if (!all.length) return;
  const now = all.findIndex((one) => one.kind === chosen.value?.kind && one.index === chosen.value.index);
  choose(all[(now + step + all.length) % all.length]!);
}

/** Smaller zones are drawn on top, so that each can be hit. */
export function inDrawingOrder(zones: Zone[]): { zone: Zone; index: number }[] {
  return zones
    .map((zone, index) => ({ zone, index }))
    .sort((one, other) => areaOf(other.zone.polygon) - areaOf(one.zone.polygon));
}

function replace(changed: Partial<Zone>, tag: string): void {
  const at = chosen.value;
  if (!at || !chosenZone.value) return;
  const zones = draft.value[at.kind].map((zone, index) => (index === at.index ? { ...zone, ...changed } : zone));
  change({ [at.kind]: zones }, tag && `${tag} ${at.kind} ${at.index} ${corner.value}`);
}
