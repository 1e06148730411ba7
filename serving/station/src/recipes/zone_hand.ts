// What pointers do in the zone editor: draw, choose, move, pan. One gesture at a time.

import { signal } from "@preact/signals";
import { draft } from "./draft";
import { moved, rectangle, round } from "./geometry";
import type { Point } from "./wire";
import { addZone, choose, chosen, chosenZone, corner, drawing, setPolygon, tool, type Kind } from "./zone_state";
import { pan, picture, scale, toPicture } from "./zone_view";

const STILL_PX = 4;
const CLOSE_PX = 12;

/** The chosen zone's corners while they are moved. */
export const moving = signal<Point[] | null>(null);
/** Where the pointer is, for the side of a polygon that is not set yet. */
export const pointer = signal<Point | null>(null);

type Gesture =
  | { what: "pan"; from: Point; last: Point }
  | { what: "draw"; from: Point; last: Point }
  | { what: "corner" | "zone"; from: Point; last: Point; polygon: Point[] };
let gesture: Gesture | null = null;

export function down(event: PointerEvent, mayDraw: boolean): void {
  const at = placeOf(event);
  const target = event.target as Element;
  (event.currentTarget as Element).setPointerCapture(event.pointerId);
  const screen: Point = [event.clientX, event.clientY];
  gesture = { what: "pan", from: at, last: screen };
  if (event.button === 1 || !mayDraw) {
    chooseUnder(target);
    return;
  }
  if (tool.value !== "select") {
    gesture = { what: "draw", from: at, last: screen };
    return;
  }
  const zone = chosenZone.value;
  const handle = target.closest<SVGElement>("[data-corner], [data-side]");
  if (handle && zone) {
    const { corner: cornerAt, side } = handle.dataset;
    const index = Number(cornerAt ?? side);
    corner.value = cornerAt === undefined ? index + 1 : index;
    const polygon = cornerAt === undefined ? zone.polygon.toSpliced(index + 1, 0, held(at)) : zone.polygon;
    gesture = { what: "corner", from: at, last: screen, polygon };
    if (cornerAt === undefined) moving.value = polygon;
  } else if (chooseUnder(target)) {
    gesture = { what: "zone", from: at, last: screen, polygon: chosenZone.value!.polygon };
  }
}

export function move(event: PointerEvent): void {
  const at = placeOf(event);
  pointer.value = at;
  if (!gesture) return;
  const [dx, dy] = [at[0] - gesture.from[0], at[1] - gesture.from[1]];
  if (gesture.what === "pan") {
    pan(event.clientX - gesture.last[0], event.clientY - gesture.last[1]);
    gesture.last = [event.clientX, event.clientY];
  } else if (gesture.what === "draw") {
    if (tool.value === "rectangle") drawing.value = rectangle(held(gesture.from), held(at));
  } else if (gesture.what === "corner") {
    moving.value = gesture.polygon.with(corner.value!, held(at));
  } else if (Math.hypot(dx, dy) * scale.value > STILL_PX || moving.value) {
    moving.value = moved(gesture.polygon, dx, dy);
  }
}

export function up(event: PointerEvent): void {
  const was = gesture;
  gesture = null;
  if (!was) return;
  const at = placeOf(event);
  const isStill = Math.hypot(at[0] - was.from[0], at[1] - was.from[1]) * scale.value < STILL_PX;
  if (was.what === "draw") {
    if (tool.value === "polygon") addCorner(at);
    else if (!isStill) addZone(drawing.value);
    else drawing.value = [];
  } else if (was.what !== "pan" && moving.value) {
    setPolygon(moving.value); // what cannot be a zone goes back to where it was, and says why
  }
  moving.value = null;
}

export function stopGesture(): void {
  gesture = null;
  moving.value = null;
  drawing.value = [];
}

export function closePolygon(): void {
  // A double click has set its corner twice.
  const points = drawing.value.filter(([x, y], index, all) => index === 0 || String([x, y]) !== String(all[index - 1]));
  addZone(points);
}

function addCorner(at: Point): void {
  const [first] = drawing.value;
  if (first && drawing.value.length > 2 && Math.hypot(at[0] - first[0], at[1] - first[1]) * scale.value < CLOSE_PX) {
    closePolygon();
  } else {
    drawing.value = [...drawing.value, held(at)];
  }
}

function chooseUnder(target: Element): boolean {
  const found = target.closest<SVGElement>("[data-zone]");
  const { kind, zone } = found?.dataset ?? {};
  const index = Number(zone);
  if (kind === undefined || !draft.value[kind as Kind][index]) {
    choose(null);
    return false;
  }
  if (chosen.value?.kind !== kind || chosen.value.index !== index) choose({ kind: kind as Kind, index });
  corner.value = null;
  return true;
}

function placeOf(event: PointerEvent): Point {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  return toPicture(event.clientX - box.left, event.clientY - box.top);
}

/** On the picture, to a tenth of a px. */
function held([x, y]: Point): Point {
  const { width, height } = picture.value;
  return [round(Math.min(Math.max(x, 0), width)), round(Math.min(Math.max(y, 0), height))];
}
