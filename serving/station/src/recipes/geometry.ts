// Polygons of zones, px of the golden reference. What is refused here is what the service refuses.

import type { Point } from "./wire";

export const MAX_POINTS = 200;
export const MAX_ZONES = 200;

export function areaOf(polygon: Point[]): number {
  let twice = 0;
  polygon.forEach(([x, y], index) => {
    const [nextX, nextY] = polygon[(index + 1) % polygon.length]!;
    twice += x * nextY - nextX * y;
  });
  return Math.abs(twice) / 2;
}

export function crossesItself(polygon: Point[]): boolean {
  const n = polygon.length;
  if (new Set(polygon.map(String)).size < n) return true;
  for (let i = 0; i < n; i += 1) {
    for (let j = i + 2; j < n; j += 1) {
      if ((j + 1) % n === i) continue; // neighbours share a corner
      if (meet(polygon[i]!, polygon[(i + 1) % n]!, polygon[j]!, polygon[(j + 1) % n]!)) return true;
    }
  }
  return false;
}

export type Fault = "recipes.zones.few" | "recipes.zones.crosses" | "recipes.zones.flat" | "recipes.zones.many";

/** Why a polygon cannot be a zone, as a key of the catalogue; null: it can. */
export function faultOf(polygon: Point[]): Fault | null {
  if (polygon.length < 3) return "recipes.zones.few";
  if (polygon.length > MAX_POINTS) return "recipes.zones.many";
  if (crossesItself(polygon)) return "recipes.zones.crosses";
  return areaOf(polygon) < 1 ? "recipes.zones.flat" : null;
}

export function rectangle([left, top]: Point, [right, bottom]: Point): Point[] {
  return [
    [left, top],
    [right, top],
    [right, bottom],
    [left, bottom],
  ];
}

export function moved(polygon: Point[], dx: number, dy: number): Point[] {
  return polygon.map(([x, y]) => [round(x + dx), round(y + dy)]);
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}


function meet(a: Point, b: Point, c: Point, d: Point): boolean {
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
}

function side(a: Point, b: Point, c: Point): number {
  return Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
}
