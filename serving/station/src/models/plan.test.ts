import { expect, test } from "vitest";
import { boardsOf, canStart, cleanNames, newest, request, type Draft } from "./plan";
import type { Model } from "./wire";

const DRAFT: Draft = { base: "", add: [], rename: {}, retire: [], recipe: "", since: "", replay: "verified", note: "" };

test("names are asked for as the service keeps them", () => {
  expect(cleanNames([" solder ball ", "solder ball", "", "e\u0301"])).toEqual(["solder ball", "\u00e9"]);
});

test("a name that is kept, or of a class that goes, is no renaming", () => {
  const asked = request({ ...DRAFT, rename: { open: "open", short: " bridge ", spur: "burr" }, retire: ["spur"] });
  expect(asked.rename).toEqual({ short: "bridge" });
  expect(asked).toMatchObject({ base: null, retire: ["spur"], data: { recipe: null, since: null, until: null } });
});

test("a day begins at midnight where the person is", () => {
  const { since } = request({ ...DRAFT, since: "2026-11-30" }).data;
  expect(new Date(since!).getTime()).toBe(new Date(2026, 10, 30).getTime());
});

test("nothing to do cannot be started, nor a class without an example to learn from", () => {
  const counts = { burr: { train: 3, acceptance: 1 }, dent: { train: 0, acceptance: 2 } };
  const ready = (draft: Draft) => canStart(draft, boardsOf(draft, counts));
  expect(ready(DRAFT)).toBe(false);
  expect(ready({ ...DRAFT, add: ["burr"] })).toBe(true);
  expect(ready({ ...DRAFT, add: ["burr", "dent"] })).toBe(false);
  expect(ready({ ...DRAFT, add: ["never drawn"] })).toBe(false);
  expect(ready({ ...DRAFT, retire: ["spur"] })).toBe(true);
});

test("without a name the version in production is built upon", () => {
  const models = [{ version: "a", is_default: false }, { version: "b", is_default: true }] as Model[];
  expect(newest(models, "")?.version).toBe("b");
  expect(newest(models, "a")?.version).toBe("a");
  expect(newest([], "")).toBeUndefined();
});
