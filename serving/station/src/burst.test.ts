import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchBursts, type Burst } from "./burst";

let scanned: string[];
let done: string[];
let begun: number;
let burst: Burst;

beforeEach(() => {
  vi.useFakeTimers();
  scanned = [];
  done = [];
  begun = 0;
  burst = watchBursts({ scan: (serial) => scanned.push(serial), begin: () => (begun += 1) });
});
afterEach(() => vi.useRealTimers());

/** Keys at these moments, ms; each notes itself as done. */
function type(keys: string, start: number, gap: number): number {
  let at = start;
  for (const key of keys) {
    vi.setSystemTime(at);
    burst.type(key, at, () => done.push(key));
    vi.advanceTimersByTime(gap);
    at += gap;
  }
  return at;
}

test.each([4, 6, 20, 40])("a serial at %i ms a key is a scan and does nothing else", (gap) => {
  const end = type("F1C-0042", 1000, gap);
  expect(burst.enter(end)).toBe(true);
  vi.advanceTimersByTime(1000);
  expect(scanned).toEqual(["F1C-0042"]);
  expect(done).toEqual([]);
});

test("a person's keys are done, in their order, and Enter is Enter", () => {
  const end = type("frp", 1000, 120);
  expect(burst.enter(end)).toBe(false);
  expect(done).toEqual(["f", "r", "p"]);
  expect(scanned).toEqual([]);
});

test("a key and Enter close together: the key first, then Enter", () => {
  burst.type("f", 1000, () => done.push("f"));
  expect(burst.enter(1030)).toBe(false);
  expect(done).toEqual(["f"]);
});

test("two keys of one hand close together are both done", () => {
  burst.type("f", 1000, () => done.push("f"));
  burst.type("j", 1030, () => done.push("j"));
  vi.advanceTimersByTime(100);
  expect(done).toEqual(["f", "j"]);
});

test("what is too fast for a person does nothing, also where Enter is missing", () => {
  type("F1C-0042", 1000, 5);
  vi.advanceTimersByTime(1000);
  expect([done, scanned]).toEqual([[], []]);
});

test("the pace is the keyboard's, not that of a browser which is held up", () => {
  // Delivered in one go, long after: each key tells when it was pressed.
  burst.type("f", 1000, () => done.push("f"));
  burst.type("j", 1200, () => done.push("j"));
  expect(burst.enter(1400)).toBe(false);
  expect(done).toEqual(["f", "j"]);
});

test("a scan after a person's word does not take the word back, and begins anew", () => {
  type("f", 1000, 300);
  const end = type("F1C-7", 1300, 5);
  burst.enter(end);
  expect(done).toEqual(["f"]);
  expect(scanned).toEqual(["F1C-7"]);
  expect(begun).toBe(2);
});

test("a key that types nothing does not overtake the one before", () => {
  burst.type("f", 1000, () => done.push("f"));
  burst.other();
  expect(done).toEqual(["f"]);
});
