import { expect, test } from "vitest";
import { logScale, terms, thinned } from "./terms";
import type { CurvePoint } from "./wire";

test("the sum comes first, then the largest term; what is no figure of quality is no curve", () => {
  const points: CurvePoint[] = [
    { step: 1, epoch: 0, grad_norm: 98, boxes: 0.2, calls: 1.5, loss: 1.7, stage: "head", rare: 3 },
    { step: 2, epoch: 0, grad_norm: 7, boxes: 0.1, calls: 0.9, loss: 1.0, stage: "head" },
    { step: 3, epoch: 1, boxes: 0.1, calls: Number.NaN, loss: 0.9, stage: "head" },
  ];
  const found = terms(points);
  expect(found.map(({ name }) => name)).toEqual(["loss", "calls", "boxes"]);
  expect(found[1]!.points).toEqual([
    { step: 1, value: 1.5 },
    { step: 2, value: 0.9 },
  ]);
});

test("a long run is thinned to the px there are, and ends where it ends", () => {
  const run = Array.from({ length: 1001 }, (_, index) => index);
  const kept = thinned(run, 100);
  expect(kept.length).toBeLessThanOrEqual(101);
  expect(kept.at(-1)).toBe(1000);
  expect(thinned([1, 2, 3], 100)).toEqual([1, 2, 3]);
});

test("a scale of decades reaches from the highest value two and a half down, and its ticks are powers of ten", () => {
  const { at, ticks } = logScale([20, 3, 0.5, 0]);
  expect(ticks).toEqual([0.1, 1, 10]);
  expect(at(20)).toBe(1);
  expect(at(2)).toBeCloseTo(0.6);
  expect(at(1e-9)).toBe(0);
  expect(at(0)).toBe(0);
  expect(logScale([0]).ticks).toEqual([]);
});
