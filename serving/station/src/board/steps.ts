// The way back: how a board's review stood before each change that was made in this window.
//
// It leads through one's own words only. Where somebody else spoke since, it ends: a step further back would take
// theirs away unseen. That of the board last spoken of outlives a reload.

import { actor } from "../session";
import type { Review } from "../types";

export type Document = Pick<Review, "calls" | "missed" | "checked" | "disposition" | "note">;

interface Way {
  /** Revision of the server's review that the last change was made from, or became. */
  revision: number;
  /** Oldest first. */
  steps: Document[];
}

const KEPT = "station.undo";
const MOST_STEPS = 100;
const MOST_KEPT_STEPS = 20;
const ways = new Map<string, Way>();

export function stepsOf(inspection: string): Document[] {
  return wayOf(inspection)?.steps ?? [];
}

export function setSteps(inspection: string, revision: number, steps: Document[]): void {
  const way = { revision, steps: steps.slice(-MOST_STEPS) };
  ways.set(inspection, way);
  keep(inspection, way);
}

/** One's own words became this revision. */
export function follow(inspection: string, revision: number): void {
  const way = wayOf(inspection);
  if (way) setSteps(inspection, revision, way.steps);
}

/** The review was read again: by another revision than one's own, somebody else spoke. */
export function meet(inspection: string, revision: number): void {
  const way = wayOf(inspection);
  if (way && way.revision !== revision) setSteps(inspection, revision, []);
}

function wayOf(inspection: string): Way | undefined {
  return ways.get(inspection) ?? kept(inspection);
}

function keep(inspection: string, { revision, steps }: Way): void {
  const text = JSON.stringify({ actor: actor(), inspection, revision, steps: steps.slice(-MOST_KEPT_STEPS) });
  try {
    sessionStorage.setItem(KEPT, text);
  } catch {
    sessionStorage.removeItem(KEPT); // no room: the way back is as long as this page
  }
}

function kept(inspection: string): Way | undefined {
  const found = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as
    | (Way & { actor: string | null; inspection: string })
    | null;
  return found?.inspection === inspection && found.actor === actor() ? found : undefined;
}
