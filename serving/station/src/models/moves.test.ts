import { expect, test } from "vitest";
import { boundBar, moved } from "./moves";

test("half a point is worth a look, less is noise", () => {
  expect(moved(0.9, 0.906)).toBe("up");
  expect(moved(0.9, 0.894)).toBe("down");
  expect(moved(0.9, 0.9049)).toBe("same");
  expect(moved(null, 0.9)).toBe("same");
});

test("the margin stands at a quarter, and a bound of four margins or more fills the bar", () => {
  expect(boundBar(0.01, 0.02)).toEqual({ bound: 0.125, margin: 0.25, isCut: false });
  expect(boundBar(0.02, 0.02).bound).toBe(0.25);
  expect(boundBar(0.26, 0.02)).toEqual({ bound: 1, margin: 0.25, isCut: true });
});
