// Which version was made from which, as a list that can be drawn.

import type { Model } from "./wire";

export interface Line {
  model: Model;
  /** How many known ancestors it has. */
  depth: number;
}

/** Parents before their children, the newest of brothers first; whose parent is not listed stands at the left. */
export function lineage(models: Model[]): Line[] {
  const known = new Set(models.map(({ version }) => version));
  const parentOf = ({ parent, version }: Model) => (parent !== null && parent !== version && known.has(parent) ? parent : "");
  const below = (parent: string, depth: number): Line[] =>
    models
      .filter((model) => parentOf(model) === parent)
      .sort(newestFirst)
      .flatMap((model) => [{ model, depth }, ...below(model.version, depth + 1)]);
  return below("", 0);
}

function newestFirst(one: Model, other: Model): number {
  return other.added.localeCompare(one.added);
}

/** Classes that it knows and its parent does not, and those that it no longer knows. */
export function changed(model: Model, parent: Model | undefined): { added: string[]; gone: string[] } {
  if (!parent) return { added: [], gone: [] };
  return {
    added: model.classes.filter((label) => !parent.classes.includes(label)),
    gone: parent.classes.filter((label) => !model.classes.includes(label)),
  };
}
