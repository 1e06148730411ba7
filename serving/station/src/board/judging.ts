// What the keys of the review do: words on calls, and the way through the calls and on to the next board.

import { batch, signal } from "@preact/signals";
import type { Action } from "../keys";
import { notify } from "../notices";
import { go } from "../route";
import { goNext, leave } from "../queue/next";
import { filter } from "../queue/list";
import { writeFilter } from "../queue/filter";
import { DISPOSITIONS, type Defect, type Word } from "../types";
import { t } from "../words";
import { review, setChecked, setDisposition, setWords, undo, unjudged, wordOf } from "./review";
import { call, report, selected } from "./state";

export const WORD_KEYS: Record<Word, string> = { real: "r", false_call: "f", process_indicator: "p" };
/** Whether the class of the chosen call is being typed. */
export const isNaming = signal(false);
/** Whether it is asked what is still open before the board is left. */
export const isAsking = signal(false);

export function judge(word: Word): void {
  const chosen = call.value;
  if (!review.value) return; // what was said before is not here yet
  if (!chosen) return chooseUnjudged();
  batch(() => {
    setWords([{ defect: chosen.id, word, label: wordOf(chosen.id)?.label ?? chosen.label }]);
    chooseUnjudged(chosen.id);
  });
}

/** The class of the chosen call is another; a call that got no word yet is real then. */
export function rename(label: string): void {
  const chosen = call.value;
  isNaming.value = false;
  if (!chosen || !label.trim()) return;
  batch(() => {
    setWords([{ defect: chosen.id, word: wordOf(chosen.id)?.word ?? "real", label }]);
    chooseUnjudged(chosen.id);
  });
}

/** One word for every call that has none. */
export function judgeRest(word: Word): void {
  const rest = unjudged.value;
  if (!rest.length) return notify(t("review.noneleft"));
  const named = new Map(report.value?.defects.map((defect) => [defect.id, defect]));
  setWords(rest.map((id) => ({ defect: id, word, label: (named.get(id) as Defect).label })));
}

/** The next call without a word, from this one on and around. */
export function chooseUnjudged(from = 0): void {
  const next = unjudged.value.find((id) => id > from) ?? unjudged.value[0];
  if (next !== undefined) selected.value = next;
}

export function step(by: number): void {
  const defects = report.value?.defects ?? [];
  if (!defects.length) return;
  const at = defects.findIndex(({ id }) => id === selected.value);
  const to = at < 0 && by < 0 ? defects.length - 1 : (at + by + defects.length) % defects.length;
  selected.value = defects[to]!.id;
}

/** Checked, and on to the next board; asks first where something is open. */
export function finish(): void {
  const now = review.value;
  if (!now) return;
  const isUndecided = now.final === "bad" && now.disposition === null;
  if (hasOpenCalls() || isUndecided) isAsking.value = true;
  else finishAnyway();
}

/** A board that was not inspected is done without words on its calls. */
function hasOpenCalls(): boolean {
  return report.value?.verdict !== "ERROR" && unjudged.value.length > 0;
}

export function finishAnyway(): void {
  const now = review.value;
  isAsking.value = false;
  if (!now) return;
  if (!hasOpenCalls()) setChecked(true);
  void (review.value?.state === "done" ? leave(now.inspection) : goNext(now.inspection));
}

export function reviewActions(): Action[] {
  const words = Object.entries(WORD_KEYS) as [Word, string][];
  return [
    ...words.map(([word, key]) => ({ key, words: t(`word.${word}`), run: () => judge(word) })),
    { key: "l", words: t("review.key.class"), run: () => (isNaming.value = call.value !== null) },
    { key: "j", words: t("review.key.down"), run: () => step(1), repeats: true },
    { key: "k", words: t("review.key.up"), run: () => step(-1), repeats: true },
    { key: "e", words: t("review.key.allreal"), run: () => judgeRest("real") },
    { key: "w", words: t("review.key.allfalse"), run: () => judgeRest("false_call") },
    { key: "u", words: t("review.undo"), run: undo },
    { key: "ctrl+z", words: t("review.undo"), run: undo },
    ...DISPOSITIONS.map((disposition, index) => ({
      key: String(index + 1),
      words: t(`disposition.${disposition}`),
      run: () => setDisposition(review.value?.disposition === disposition ? null : disposition),
    })),
    { key: "enter", words: t("review.finish"), run: finish },
    { key: "n", words: t("review.key.next"), run: () => void goNext(report.value?.id ?? "") },
    { key: "q", words: t("review.key.queue"), run: () => go("queue", "", writeFilter(filter.value)) },
  ];
}
