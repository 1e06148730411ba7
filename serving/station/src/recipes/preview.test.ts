import { expect, test } from "vitest";
import { countsAt, leastBoards, type ClassPreview } from "./preview";

const SHORT: ClassPreview = {
  label: "short",
  threshold: 0.3,
  real: [0.9, 0.6, 0.4],
  false_calls: [0.5, 0.35],
  num_process_indicators: 0,
  missed: 1,
  boards: 4,
  points: [
    { threshold: 0.3, misses: 1, false_calls: 2, miss_bound: 0.75 },
    { threshold: 0.5, misses: 2, false_calls: 1, miss_bound: 0.9 },
  ],
  targets: [],
};

test("a call counts from its score up, and a defect nobody proposed is missed at every threshold", () => {
  expect(countsAt(SHORT, 0.3)).toEqual({ misses: 1, false_calls: 2, miss_bound: 0.75 });
  expect(countsAt(SHORT, 0.4)).toEqual({ misses: 1, false_calls: 1, miss_bound: 0.9 });
  expect(countsAt(SHORT, 0.41)).toEqual({ misses: 2, false_calls: 1, miss_bound: 0.9 });
  expect(countsAt(SHORT, 0.95)).toEqual({ misses: 4, false_calls: 0, miss_bound: 1 });
});

test("so many boards without a miss support a target: 59 for 5 %, 299 for 1 %, 459 at 99 %", () => {
  const need = (max_miss_rate: number, confidence: number) => leastBoards({ label: null, max_miss_rate, confidence });
  expect([need(0.05, 0.95), need(0.01, 0.95), need(0.01, 0.99), need(0.5, 0.5)]).toEqual([59, 299, 459, 1]);
});
