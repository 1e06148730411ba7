// What finished reviews of this recipe's boards say of its thresholds, as the service sends it.

import type { Target } from "./wire";

export interface ThresholdPoint {
  threshold: number;
  /** Real defects that no call of the class reaches. */
  misses: number;
  false_calls: number;
  /** Upper bound of the share of boards with such a defect on which one is missed. */
  miss_bound: number | null;
}

export interface TargetState {
  target: Target;
  /** Further boards with a confirmed defect that would support it; 0: supported; null: none would. */
  more_boards: number | null;
  words: string;
}

export interface ClassPreview {
  label: string;
  /** In force now; null: the model does not know the class. */
  threshold: number | null;
  real: number[];
  false_calls: number[];
  num_process_indicators: number;
  missed: number;
  boards: number;
  /** From the threshold in force up. */
  points: ThresholdPoint[];
  targets: TargetState[];
}

export interface Preview {
  recipe: string;
  model_version: string;
  confidence: number;
  boards: number;
  audited: number;
  classes: ClassPreview[];
  /** The recipe's for all classes together. */
  targets: TargetState[];
  words: string;
}

/** What another threshold would do. Scores are exact; the bound is that of the next point up, which is no lower. */
export function countsAt(one: ClassPreview, threshold: number): Omit<ThresholdPoint, "threshold"> {
  const above = one.points.find((point) => point.threshold >= threshold - 1e-9);
  return {
    misses: one.missed + one.real.filter((score) => score < threshold).length,
    false_calls: one.false_calls.filter((score) => score >= threshold).length,
    miss_bound: above ? above.miss_bound : one.boards ? 1 : null,
  };
}

/** Boards with a confirmed defect that a target takes at the least: so many when none of them is missed. */
export function leastBoards({ max_miss_rate, confidence }: Target): number {
  return Math.ceil(Math.log(1 - confidence) / Math.log(1 - max_miss_rate) - 1e-9);
}
