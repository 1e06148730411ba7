import { expect, test } from "vitest";
import { boxAround, proposal, type Spot } from "./spot";

test("the place asked about is whole px on the board, around a box or a polygon", () => {
  expect(boxAround({ box_xyxy: [10.2, 20.7, 30.1, 40], polygon: null }, 100, 100)).toEqual([10, 20, 31, 40]);
  const polygon: [number, number][] = [
    [95.5, 3],
    [100, 8.4],
    [90, 12],
  ];
  expect(boxAround({ box_xyxy: null, polygon }, 100, 100)).toEqual([90, 3, 100, 12]);
  expect(boxAround({ box_xyxy: [100, 100, 100, 100], polygon: null }, 100, 100)).toEqual([99, 99, 100, 100]);
});

const spot = (classes: [string, number, number | null][], label = "open"): Spot =>
  ({ label, classes: classes.map(([name, threshold, needed]) => ({ label: name, score: 0.1, threshold, needed })) }) as unknown as Spot;

test("the threshold of the class that was drawn is proposed, else that of the nearest class", () => {
  const seen = spot([
    ["open", 0.5, 0.3],
    ["short", 0.4, 0.1],
  ]);
  expect(proposal(seen, "short")?.label).toBe("short");
  expect(proposal(seen, "never seen")?.label).toBe("open");
});

test("what was called already, or by no threshold of use, is not proposed", () => {
  expect(proposal(spot([["open", 0.5, 0.5]]), "open")).toBeNull();
  expect(proposal(spot([["open", 0.5, null]]), "open")).toBeNull();
  expect(proposal(spot([["open", 0.5, null], ["short", 0.4, 0.2]]), "open")?.label).toBe("short");
});
