// What differs between two revisions of a recipe, as lines a person can read.

import { t } from "../words";
import type { Calibration, RecipeReport, Reference, Settings, Target, Zone } from "./wire";

export interface Change {
  what: string;
  before: string;
  after: string;
}

/** `references` null: only the settings are compared. */
export function changesBetween(
  before: Settings,
  after: Settings,
  references: { before: Reference[]; after: Reference[] } | null = null,
): Change[] {
  return [
    ...(references ? ofReferences(references.before, references.after) : []),
    ...one("recipes.note", before.note, after.note),
    ...one("recipes.scale", scale(before), scale(after)),
    ...one("recipes.board", size(before), size(after)),
    ...one("recipes.camera", before.camera ?? "", after.camera ?? ""),
    ...one("recipes.model", before.model_version ?? "", after.model_version ?? ""),
    ...ofZones("ignore", before.ignore, after.ignore),
    ...ofZones("regions", before.regions, after.regions),
    ...byName("recipes.least.of", sizes(before), sizes(after)),
    ...byName("recipes.target.of", targets(before.targets), targets(after.targets)),
    ...one("recipes.calibration", calibration(before.calibration), calibration(after.calibration)),
  ];
}

export function changesOf(before: RecipeReport | undefined, after: RecipeReport): Change[] {
  if (!before) return [];
  return changesBetween(before.recipe, after.recipe, { before: before.references, after: after.references });
}

export function targetWords({ max_miss_rate, confidence }: Target): string {
  return t("recipes.target.words", { rate: percent(max_miss_rate), sure: percent(confidence) });
}

/** As it was typed, without the digits that binary fractions bring. */
export function percent(share: number): number {
  return Number((100 * share).toFixed(4));
}

type Named = "recipes.note" | "recipes.scale" | "recipes.board" | "recipes.camera" | "recipes.model" | "recipes.calibration";

function one(what: Named, before: string, after: string): Change[] {
  return before === after ? [] : [{ what: t(what), before, after }];
}

function byName(what: "recipes.least.of" | "recipes.target.of", before: Map<string, string>, after: Map<string, string>): Change[] {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .map((name) => ({ what: t(what, { label: name }), before: before.get(name) ?? "", after: after.get(name) ?? "" }))
    .filter((found) => found.before !== found.after);
}

function scale({ px_per_mm }: Settings): string {
  return px_per_mm === null ? "" : t("recipes.scale.words", { n: px_per_mm });
}

function size({ board_mm }: Settings): string {
  return board_mm === null ? "" : t("recipes.board.words", { width: board_mm[0], height: board_mm[1] });
}

function sizes({ min_defect_mm }: Settings): Map<string, string> {
  return new Map(Object.entries(min_defect_mm).map(([label, mm]) => [label, t("recipes.mm", { n: mm })]));
}

function targets(all: Target[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const target of all) {
    const label = target.label ?? t("recipes.target.all");
    found.set(label, [found.get(label), targetWords(target)].filter(Boolean).join("; "));
  }
  return found;
}

function calibration(one: Calibration | null): string {
  return one ? t("recipes.calibration.words", { date: one.date.slice(0, 10), n: one.num_boards }) : "";
}

function ofReferences(before: Reference[], after: Reference[]): Change[] {
  const names = [...new Set([...before, ...after].map((one) => one.name))];
  return names.flatMap((name) => {
    const [was, is] = [before, after].map((list) => list.find((found) => found.name === name));
    if (was?.sha256 === is?.sha256) return [];
    const words = (found: Reference | undefined) =>
      found ? t("recipes.reference.words", { width: found.width, height: found.height, sha: found.sha256.slice(0, 8) }) : "";
    return [{ what: t("recipes.reference.of", { name }), before: words(was), after: words(is) }];
  });
}

/** Zones have no number: they are told apart by name, and what has none or shares it by its corners. */
function ofZones(kind: "ignore" | "regions", before: Zone[], after: Zone[]): Change[] {
  const rest = (from: Zone[], other: Zone[]) => {
    const there = other.map((zone) => JSON.stringify(zone));
    return from.filter((zone) => {
      const found = there.indexOf(JSON.stringify(zone));
      if (found >= 0) there.splice(found, 1);
      return found < 0;
    });
  };
  const gone = rest(before, after);
  const come = rest(after, before);
  const lines: Change[] = [];
  for (const zone of gone) {
    const index = come.findIndex(
      (other) => (zone.name !== "" && other.name === zone.name) || sameCorners(zone, other),
    );
    const [into] = index < 0 ? [] : come.splice(index, 1);
    lines.push(ofZone(kind, zone, into));
  }
  return [...lines, ...come.map((zone) => ofZone(kind, undefined, zone))];
}

function ofZone(kind: "ignore" | "regions", was: Zone | undefined, is: Zone | undefined): Change {
  const name = was?.name || is?.name || t("recipes.zones.unnamed");
  const what = t(kind === "ignore" ? "recipes.zones.ignore.of" : "recipes.zones.regions.of", { name });
  if (was && is && was.name !== is.name) return { what, before: was.name || t("recipes.zones.unnamed"), after: is.name };
  return { what, before: corners(was), after: corners(is) };
}

function corners(zone: Zone | undefined): string {
  if (!zone) return "";
  const shown = zone.polygon.slice(0, 4).map(([x, y]) => `${Math.round(x)},${Math.round(y)}`);
  const more = zone.polygon.length > shown.length ? " \u2026" : "";
  return t("recipes.zones.corners", { n: zone.polygon.length, places: shown.join("  ") + more });
}

function sameCorners(one: Zone, other: Zone): boolean {
  return JSON.stringify(one.polygon) === JSON.stringify(other.polygon);
}
