import { expect, test } from "vitest";
import { filled } from "./filled";

test("one of a thing is told in the singular, any other number in the plural", () => {
  const text = "{n} {n|board was|boards were} reviewed.";
  expect(filled(text, { n: 1 })).toBe("1 board was reviewed.");
  expect(filled(text, { n: "1" })).toBe("1 board was reviewed.");
  expect([0, 2, 21, "1,000"].map((n) => filled(text, { n }))).toEqual(
    ["0", "2", "21", "1,000"].map((n) => `${n} boards were reviewed.`),
  );
});

test("a gap without a value stays to be seen", () => {
  expect(filled("{who}: {n} {n|call|calls}", { who: "a" })).toBe("a: {n} {n|call|calls}");
});
