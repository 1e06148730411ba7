// The recipe that is open, as it is stored and as it is being changed. A change is stored as a whole, for the revision
// that was read; when another one has come in between, both are kept and a person decides.

import { computed, signal } from "@preact/signals";
import { ApiError } from "../api";
import { readRecipe, storeSettings } from "./calls";
import { NO_SETTINGS, type RecipeReport, type Settings } from "./wire";

const MAX_STEPS = 200;

export const stored = signal<RecipeReport | null>(null);
export const draft = signal<Settings>(NO_SETTINGS);
export const isSaving = signal(false);
/** Why the last save was refused. */
export const fault = signal<ApiError | null>(null);
/** The revision that somebody else stored meanwhile. */
export const theirs = signal<RecipeReport | null>(null);

export const isChanged = computed(
  () => stored.value !== null && JSON.stringify(draft.value) !== JSON.stringify(stored.value.recipe),
);

interface Step {
  before: Settings;
  /** Steps of one tag in a row are one: a word that is typed is undone at once. */
  tag: string;
}
const done = signal<Step[]>([]);
const undone = signal<Settings[]>([]);
export const canUndo = computed(() => done.value.length > 0);
export const canRedo = computed(() => undone.value.length > 0);

export function open(recipe: RecipeReport): void {
  stored.value = recipe;
  draft.value = recipe.recipe;
  done.value = [];
  undone.value = [];
  fault.value = null;
  theirs.value = null;
}

export function change(changed: Partial<Settings>, tag = ""): void {
  const last = done.value.at(-1);
  if (!tag || last?.tag !== tag) done.value = [...done.value, { before: draft.value, tag }].slice(-MAX_STEPS);
  undone.value = [];
  draft.value = { ...draft.value, ...changed };
}

export function undo(): void {
  const last = done.value.at(-1);
  if (!last) return;
  undone.value = [...undone.value, draft.value];
  done.value = done.value.slice(0, -1);
  draft.value = last.before;
}

export function redo(): void {
  const next = undone.value.at(-1);
  if (!next) return;
  done.value = [...done.value, { before: draft.value, tag: "" }];
  undone.value = undone.value.slice(0, -1);
  draft.value = next;
}

export function discard(): void {
  if (stored.value) open(stored.value);
}

/** A revision that was stored some other way, as with new references: what is being changed goes on upon it. */
export function rebase(recipe: RecipeReport): void {
  if (!isChanged.value) return open(recipe);
  stored.value = recipe;
  theirs.value = null;
  fault.value = null;
}

export async function save(): Promise<boolean> {
  const base = stored.value;
  if (!base || isSaving.value) return false;
  isSaving.value = true;
  fault.value = null;
  try {
    const sent = draft.value;
    const answer = await storeSettings(base.name, sent, base.revision);
    if (draft.value === sent) open(answer);
    else rebase(answer);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === "revision_conflict") theirs.value = await readRecipe(base.name).catch(() => null);
    if (!theirs.value) fault.value = error;
    return false;
  } finally {
    isSaving.value = false;
  }
}

/** After a conflict: what is there now, and what was being changed is dropped. */
export function takeTheirs(): void {
  if (theirs.value) open(theirs.value);
}

/** After a conflict: what was changed here goes upon what is there now. Where both changed one setting, this counts. */
export async function keepMine(): Promise<boolean> {
  const [base, there] = [stored.value, theirs.value];
  if (!base || !there) return false;
  draft.value = merge(base.recipe, draft.value, there.recipe);
  stored.value = there;
  theirs.value = null;
  return save();
}

export function merge(base: Settings, mine: Settings, their: Settings): Settings {
  const isMine = (name: keyof Settings) => JSON.stringify(mine[name]) !== JSON.stringify(base[name]);
  const names = Object.keys(mine) as (keyof Settings)[];
  return Object.fromEntries(names.map((name) => [name, isMine(name) ? mine[name] : their[name]])) as unknown as Settings;
}
