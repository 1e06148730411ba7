// What is to be learnt, as it is put together on the page and as the service takes it.

import type { Examples, Model, RetrainRequest } from "./wire";

/** Examples of a new class with which a model finds it again. */
export const WANTED = 10;

export interface Draft {
  /** "": what is in production. */
  base: string;
  add: string[];
  rename: Record<string, string>;
  retire: string[];
  /** "": boards of all recipes. */
  recipe: string;
  /** A day, as a date field has it; "": from the first. */
  since: string;
  replay: "verified" | "drawn";
  note: string;
}

/** As the service keeps names; empty and repeated ones left out. */
export function cleanNames(names: string[]): string[] {
  return [...new Set(names.map((name) => name.trim().normalize("NFC")).filter(Boolean))];
}

/** The version to start from: the one named, else the one in production. */
export function newest(models: Model[], base: string): Model | undefined {
  return models.find(({ version, is_default }) => (base ? version === base : is_default));
}

export function request(draft: Draft): RetrainRequest {
  const { base, add, rename, retire, recipe, since, replay, note } = draft;
  const renamed = Object.entries(rename).filter(([from, to]) => to.trim() && to.trim() !== from && !retire.includes(from));
  return {
    base: base || null,
    add: cleanNames(add),
    rename: Object.fromEntries(renamed.map(([from, to]) => [from, to.trim().normalize("NFC")])),
    retire,
    data: { recipe: recipe || null, since: since ? new Date(`${since}T00:00`).toISOString() : null, until: null },
    replay,
    note: note.trim(),
  };
}

/** Examples to learn from, by class to be added; a class that nobody ever drew has none. */
export function boardsOf({ add }: Draft, counts: Examples["counts"]): { label: string; train: number }[] {
  return add.map((label) => ({ label, train: counts[label]?.train ?? 0 }));
}

/** Whether there is anything to do and something to do it with. */
export function canStart(draft: Draft, boards: { train: number }[]): boolean {
  const asked = request(draft);
  const changes = asked.add.length + asked.retire.length + Object.keys(asked.rename).length;
  return changes > 0 && boards.every(({ train }) => train > 0);
}
