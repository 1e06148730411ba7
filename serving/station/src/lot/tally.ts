// The figures of a lot, counted from its boards as GET /v1/stats counts a period's.

import type { Disposition } from "../types";
import { DISPOSITIONS } from "../types";
import type { LotBoard } from "./gather";

export interface ClassLine {
  label: string;
  real: number;
  false_calls: number;
  process_indicators: number;
  missed: number;
}

export interface Tally {
  /** Serials, and inspections without one. */
  boards: number;
  inspections: number;
  verdicts: { PASS: number; FAIL: number; ERROR: number };
  /** First attempts that were inspected, and how many of them were good. */
  first: number;
  first_passed: number;
  first_good: number;
  /** Of the newest inspection of each board. */
  good: number;
  bad: number;
  open: number;
  not_inspected: number;
  dispositions: Record<Disposition, number>;
  classes: ClassLine[];
}

/** `boards` in the order of inspection. */
export function tallyOf(boards: LotBoard[]): Tally {
  const newest = new Map(boards.map((board) => [board.item.serial ?? board.item.id, board]));
  const tally: Tally = {
    boards: newest.size,
    inspections: boards.length,
    verdicts: { PASS: 0, FAIL: 0, ERROR: 0 },
    first: 0,
    first_passed: 0,
    first_good: 0,
    good: 0,
    bad: 0,
    open: 0,
    not_inspected: 0,
    dispositions: Object.fromEntries(DISPOSITIONS.map((one) => [one, 0])) as Record<Disposition, number>,
    classes: classesOf(boards),
  };
  const seen = new Set<string>();
  for (const board of boards) {
    const { verdict, serial, attempt } = board.item;
    tally.verdicts[verdict] += 1;
    // A first picture that was sent again is the same attempt.
    if (verdict === "ERROR" || (serial !== null && (attempt !== 1 || seen.has(serial)))) continue;
    if (serial !== null) seen.add(serial);
    tally.first += 1;
    tally.first_passed += Number(verdict === "PASS");
    tally.first_good += Number(outcomeOf(board) === "good");
  }
  for (const board of newest.values()) {
    tally[outcomeOf(board)] += 1;
    const { disposition } = board.item;
    if (disposition) tally.dispositions[disposition] += 1;
  }
  return tally;
}

/** What is to be believed of a board: a finished review that was not too quick to be true, else the verdict. */
export function outcomeOf({ item, review }: LotBoard): "good" | "bad" | "open" | "not_inspected" {
  const isDone = item.state === "done" && review?.hasty !== true;
  if (isDone && item.final) return item.final;
  if (item.verdict === "ERROR") return "not_inspected";
  return item.verdict === "PASS" ? "good" : "open";
}

function classesOf(boards: LotBoard[]): ClassLine[] {
  const lines = new Map<string, ClassLine>();
  const line = (label: string) => {
    const known = lines.get(label) ?? { label, real: 0, false_calls: 0, process_indicators: 0, missed: 0 };
    lines.set(label, known);
    return known;
  };
  for (const { item, review } of boards) {
    if (!review || review.hasty || item.state !== "done") continue;
    for (const { word, label } of review.calls) {
      const field = word === "real" ? "real" : word === "false_call" ? "false_calls" : "process_indicators";
      line(label)[field] += 1;
    }
    for (const { label } of review.missed) line(label).missed += 1;
  }
  const bad = (one: ClassLine) => one.real + one.missed;
  return [...lines.values()].sort((one, other) => bad(other) - bad(one) || one.label.localeCompare(other.label));
}
