import { expect, test } from "vitest";
import { ownerOf, pair, serialOf } from "./pairing";

const named = (...names: string[]) => names.map((name) => ({ name }));

test("a board's serial is its file's name without what only says that it is the board", () => {
  expect(["F1C-0042.png", "00041000_test.jpg", "a.b.tif"].map(serialOf)).toEqual(["F1C-0042", "00041000", "a.b"]);
  expect(serialOf(`${"x".repeat(300)}.png`)).toHaveLength(200);
});

test("references are told by their names alone", () => {
  const names = ["F1C_temp.png", "F1C-REF.png", "F1C golden.tif", "golden.png", "F1C.png", "prefer.png", "goldenrod_7.png"];
  expect(names.map(ownerOf)).toEqual(["f1c", "f1c", "f1c", "", null, null, null]);
});

test("each board gets its own reference, whatever their order", () => {
  const references = named("b_ref.png", "a_test_golden.png", "A_temp.png");
  const found = pair(["a_test.png", "b.png", "c.png"], references);
  expect(found.map((one) => one?.name ?? null)).toEqual(["a_test_golden.png", "b_ref.png", null]);
});

test("one called golden, or the only one that fits no board, is the reference of all others", () => {
  expect(pair(["a.png", "b.png"], named("golden.png", "b_ref.png")).map((one) => one?.name)).toEqual(["golden.png", "b_ref.png"]);
  expect(pair(["a.png", "b.png"], named("panel7_ref.png")).map((one) => one?.name)).toEqual(["panel7_ref.png", "panel7_ref.png"]);
  expect(pair(["a.png", "b.png"], named("a_ref.png")).map((one) => one?.name)).toEqual(["a_ref.png", undefined]);
});
