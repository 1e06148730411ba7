import { expect, test } from "vitest";
import { changed, lineage } from "./lineage";
import type { Model } from "./wire";

function model(version: string, parent: string | null, added: string, classes: string[] = []): Model {
  return { version, parent, added, classes } as unknown as Model;
}

const drawn = (models: Model[]) => lineage(models).map(({ model: { version }, depth }) => `${depth} ${version}`);

test("children stand under their parent, the newest of brothers first", () => {
  const models = [
    model("old", null, "2026-01-01"),
    model("a", "old", "2026-02-01"),
    model("b", "old", "2026-03-01"),
    model("a1", "a", "2026-04-01"),
    model("other", null, "2026-02-15"),
  ];
  expect(drawn(models)).toEqual(["0 other", "0 old", "1 b", "1 a", "2 a1"]);
});

test("a version whose parent is gone is still listed, and each is listed once", () => {
  expect(drawn([model("x", "gone", "2026-01-01"), model("y", "y", "2026-01-02")])).toEqual(["0 y", "0 x"]);
});

test("what a version learnt and forgot is told against its parent", () => {
  const parent = model("p", null, "2026-01-01", ["open", "short"]);
  expect(changed(model("c", "p", "2026-01-02", ["open", "scratch"]), parent)).toEqual({ added: ["scratch"], gone: ["short"] });
  expect(changed(parent, undefined)).toEqual({ added: [], gone: [] });
});
