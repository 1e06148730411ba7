// What a person says of the open board, kept on this machine until the server has it.
//
// Interface for the viewer and the panel; the outbox behind it sends, repeats after a network loss, and stops at a
// conflict.

import { computed, signal } from "@preact/signals";
import { request } from "../api";
import { listen } from "../live";
import { notify } from "../notices";
import { fateOf, verificationOf, type Entry } from "../outbox";
import { keepOrTell, outbox } from "../sending";
import { actor } from "../session";
import type { CallWord, Disposition, Missed, Review, Word } from "../types";
import { t } from "../words";
import { learnClass } from "./classes";
import { report } from "./state";
import { follow, meet, setSteps, stepsOf, type Document } from "./steps";

/** The server's review of the open board, as last read. */
const base = signal<Review | null>(null);
export const openFailed = signal<unknown>(null);

/** What of the open board is not sent yet. */
export const unsent = computed<Entry | null>(
  () => outbox.entries.value.find((entry) => entry.inspection === base.value?.inspection) ?? null,
);

/**
 * The document as it stands here, with what is not sent yet. null while none is open, and until it is the one of the
 * board that is shown: a key that comes early must not speak of the board before.
 */
export const review = computed<Review | null>(() => {
  const opened = report.value;
  if (!opened || base.value?.inspection !== opened.id) return null;
  const merged = { ...base.value, ...unsent.value?.verification, ...unsent.value?.fate };
  const isBad = merged.missed.length > 0 || merged.calls.some(({ word }) => word === "real");
  const said = new Set(merged.calls.map(({ defect }) => defect));
  const hasWords = opened.defects.every(({ id }) => said.has(id));
  const isDone =
    merged.checked && (hasWords || opened.verdict === "ERROR") && (!isBad || merged.disposition !== null);
  return { ...merged, state: isDone ? "done" : "open", final: isBad ? "bad" : isDone ? "good" : null };
});

/** Numbers of the listed calls of which nobody has said anything, in the report's order. */
export const unjudged = computed<number[]>(() => {
  const said = new Set(review.value?.calls.map(({ defect }) => defect));
  return (report.value?.defects ?? []).map(({ id }) => id).filter((id) => !said.has(id));
});

export function wordOf(defect: number): CallWord | undefined {
  return review.value?.calls.find((call) => call.defect === defect);
}

export async function openReview(inspection: string): Promise<void> {
  if (base.value?.inspection !== inspection) base.value = null;
  openFailed.value = null;
  wanted = inspection;
  try {
    const found = await request<Review>(`/v1/inspections/${encodeURIComponent(inspection)}/review`);
    if (wanted !== inspection) return;
    if (base.value?.inspection === inspection && found.revision < base.value.revision) return; // asked before we spoke
    if (!outbox.find(inspection)) meet(inspection, found.revision);
    base.value = found;
    for (const { label } of [...found.calls, ...found.missed]) learnClass(label);
  } catch (error) {
    if (wanted === inspection) openFailed.value = error;
  }
}
let wanted = "";

export function setWord(defect: number, word: Word | null, label: string): void {
  setWords([{ defect, word, label }]);
}

/** Several words at once, as one step of undo. */
export function setWords(said: { defect: number; word: Word | null; label: string }[]): void {
  const now = review.value;
  if (!now) return;
  const changed = new Map(now.calls.map((call) => [call.defect, call]));
  for (const { defect, word, label } of said) {
    if (word) changed.set(defect, { defect, word, label: cleanName(label) });
    else changed.delete(defect);
  }
  for (const { label } of said) learnClass(label);
  say({ calls: [...changed.values()].sort((one, other) => one.defect - other.defect) });
}

export function addMissed(missed: Missed): void {
  if (!review.value) return;
  const label = cleanName(missed.label);
  learnClass(label);
  say({ missed: [...review.value.missed, { ...missed, label }] });
}

export function removeMissed(index: number): void {
  if (review.value) say({ missed: review.value.missed.filter((_, other) => other !== index) });
}

export function setDisposition(disposition: Disposition | null): void {
  say({ disposition });
}

export function setNote(note: string): void {
  say({ note: note.trim() });
}

export function setChecked(checked: boolean): void {
  say({ checked });
  if (checked) outbox.flush(); // the board is left
}

/** Take the last change on this board back, whatever it was; sent or not. */
export function undo(): void {
  const now = review.value;
  const known = stepsOf(now?.inspection ?? "");
  const before = known.at(-1);
  if (!now || !before) return notify(t("review.undo.none"));
  change(now, before, known.slice(0, -1));
}

interface Change {
  inspection: string;
  revision: number;
  before: Document;
  /** What undo led to. */
  stepsBefore: Document[];
  /** Nothing else of this board waited to be sent. */
  isFirst: boolean;
}
let recent: Change[] = [];

/** What takes back all that is said from now on, on whatever board: see guardAgainstScans. */
export function snapshot(): () => void {
  recent = [];
  return () => {
    const since = recent.toReversed();
    recent = [];
    for (const { inspection, revision, before, stepsBefore, isFirst } of since) {
      setSteps(inspection, revision, stepsBefore);
      if (review.value?.inspection === inspection) put(review.value, before);
      else if (isFirst) outbox.withdraw(inspection);
    }
  };
}

function say(said: Partial<Document>): void {
  const now = review.value;
  if (!now) return;
  const before = documentOf(now);
  const after = { ...before, ...said };
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  change(now, after, [...stepsOf(now.inspection), before]);
}

function change(now: Review, after: Document, stepsAfter: Document[]): void {
  const { inspection, revision } = now;
  const stepsBefore = stepsOf(inspection);
  recent.push({ inspection, revision, before: documentOf(now), stepsBefore, isFirst: !unsent.value });
  setSteps(inspection, revision, stepsAfter);
  put(now, after);
}

function put(now: Review, after: Document): void {
  const { calls, missed, checked, disposition, note } = after;
  const isAsBefore = base.value && JSON.stringify(documentOf(base.value)) === JSON.stringify(after);
  if (isAsBefore && outbox.withdraw(now.inspection)) return;
  const said = {
    ...(verificationOf(after) === verificationOf(now) ? {} : { verification: { calls, missed, checked } }),
    ...(fateOf(after) === fateOf(now) ? {} : { fate: { disposition, note } }),
  };
  const name = report.value?.serial ?? "";
  keepOrTell(now.inspection, name || `\u2026${now.inspection.slice(-6)}`, now.revision, said);
}

function documentOf({ calls, missed, checked, disposition, note }: Review): Document {
  return { calls, missed, checked, disposition, note };
}

/** As the server keeps names. */
function cleanName(label: string): string {
  return label.trim().normalize("NFC");
}

/** Of two versions, take the other's; undo brings one's own back. */
export function takeTheirs(entry: Entry): void {
  if (!entry.theirs) return;
  const mine = review.value;
  if (mine?.inspection === entry.inspection) setSteps(entry.inspection, entry.theirs.revision, [documentOf(mine)]);
  outbox.drop(entry.inspection);
  if (base.value?.inspection === entry.inspection) base.value = entry.theirs;
}

outbox.onSent((answer) => {
  follow(answer.inspection, answer.revision);
  if (base.value?.inspection === answer.inspection) base.value = answer;
  if (answer.question) questions.value = [...questions.value, answer];
});

/** Reviews about which the server asks back. */
export const questions = signal<Review[]>([]);

/** Yes, each was looked at: the same verification once more, on the revision that was doubted. */
export function confirmWords({ inspection, revision, calls, missed, checked }: Review): void {
  const name = outbox.find(inspection)?.name ?? `\u2026${inspection.slice(-6)}`;
  keepOrTell(inspection, name, revision, { verification: { calls, missed, checked } });
}

listen({
  review: ({ id, revision, actor: who }) => {
    if (id !== review.value?.inspection || revision <= review.value.revision || unsent.value) return;
    if (who !== (actor() ?? "") || !who) notify(t("review.changed", { who: who || t("review.somebody") }));
    void openReview(id);
  },
  missed: () => {
    if (base.value && !unsent.value) void openReview(base.value.inspection);
  },
});

