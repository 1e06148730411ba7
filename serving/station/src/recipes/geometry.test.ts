import { expect, test } from "vitest";
import { areaOf, crossesItself, faultOf, rectangle } from "./geometry";
import type { Point } from "./wire";

const SQUARE: Point[] = rectangle([0, 0], [10, 10]);
const BOW_TIE: Point[] = [[0, 0], [10, 0], [0, 10], [10, 10]];

test("area is that of the outline, whichever way round", () => {
  expect(areaOf(SQUARE)).toBe(100);
  expect(areaOf([...SQUARE].reverse())).toBe(100);
  expect(areaOf([[0, 0], [4, 0], [0, 3]])).toBe(6);
});

test("an outline that crosses itself or comes twice to a corner is refused, a hollow one is not", () => {
  expect(crossesItself(BOW_TIE)).toBe(true);
  expect(crossesItself([...SQUARE, [0, 0]])).toBe(true);
  const hollow: Point[] = [[0, 0], [10, 0], [10, 10], [5, 1], [0, 10]];
  expect(crossesItself(hollow)).toBe(false);
});

test("what cannot be a zone is told apart", () => {
  expect(faultOf(SQUARE)).toBeNull();
  expect(faultOf(SQUARE.slice(0, 2))).toBe("recipes.zones.few");
  expect(faultOf(BOW_TIE)).toBe("recipes.zones.crosses");
  expect(faultOf([[0, 0], [5, 5], [9, 9.1]])).toBe("recipes.zones.flat");
  const wheel = Array.from({ length: 201 }, (_, n): Point => [1e3 * Math.cos(n / 32), 1e3 * Math.sin(n / 32)]);
  expect(faultOf(wheel)).toBe("recipes.zones.many");
});
