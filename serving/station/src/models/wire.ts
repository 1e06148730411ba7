// Versions of the model, jobs and examples, as the service sends them.

import type { Box, Verdict } from "../types";

export type Stage = "candidate" | "shadow" | "production" | "retired";
export type Outcome = "pass" | "fail" | "insufficient";

/** Figures of a version beside those of the one it was made from; measured when it was trained. */
export interface BeforeAfter {
  base: string;
  version: string;
  /** Average precision, 0 to 1. */
  classes: { label: string; is_new: boolean; before: number | null; after: number | null; n: number }[];
  /** How many of `boards` boards with the old classes have a call where nothing is wrong. */
  false_calls: { before: number | null; after: number | null; boards: number };
  examples: Record<string, number>;
  minutes: number;
  measured_on: string;
}

/** A defect that the base calls and the candidate does not. */
export interface GateMiss {
  picture: string;
  /** The board; empty where the set names none. */
  group: string;
  box_xyxy: Box;
  size_px: number;
  base_score: number;
  candidate_score: number | null;
}

/** A false call of the candidate on a board on which the base has none. */
export interface NewCall {
  picture: string;
  group: string;
  /** null: not inspected. */
  label: string | null;
  score: number | null;
  box_xyxy: Box | null;
}

export interface GateClass {
  label: string;
  result: Outcome;
  num_defects: number;
  num_boards: number;
  base_missed: number;
  candidate_missed: number;
  newly_missed: number;
  newly_found: number;
  boards_newly_missed: number;
  /** Upper bound of the share of boards with such a defect on which one is newly missed; null: no board has one. */
  bound: number | null;
  /** Further boards with such a confirmed defect that would do; 0 unless the result is insufficient. */
  needs: number;
  by_size: { max_px: number | null; n: number; newly_missed: number }[];
  missed: GateMiss[];
}

/** Whether a candidate is as good as the version that it would take the place of, on boards it never learnt from. */
export interface Gate {
  result: Outcome;
  words: string[];
  base: { name: string; version: string };
  candidate: { name: string; version: string };
  data: { fingerprint: string; pictures: number; boards: number; defects: number };
  mode: "with_reference" | "without_reference";
  margin: number;
  false_call_margin: number;
  confidence: number;
  classes: GateClass[];
  false_calls: {
    result: Outcome;
    num_boards: number;
    base_boards: number;
    candidate_boards: number;
    newly: number;
    cleared: number;
    bound: number | null;
    /** Of the share of boards newly stopped, less the share of boards cleared. */
    net_bound: number | null;
    needs: number;
    calls: NewCall[];
  };
  new_classes: { label: string; num_defects: number; found: number }[];
  retired_classes: string[];
}

export interface Deed {
  at: string;
  actor: string;
  /** null: boards whose recipe pins no version. */
  recipe: string | null;
  deed: "added" | "promoted" | "rolled back" | "shadow" | "retired";
  reason: string;
  override: boolean;
}

export interface Model {
  version: string;
  name: string;
  stage: Stage;
  parent: string | null;
  classes: string[];
  needs_reference: boolean;
  added: string;
  actor: string;
  data_fingerprint: string | null;
  git_revision: string | null;
  /** Names of the recipes that it inspects: they pin it, or pin nothing and it is the default. */
  recipes: string[];
  /** Inspects boards without a recipe, or whose recipe pins no version. */
  is_default: boolean;
  loaded: boolean;
  /** Why the server could not load it when it was asked for last; null: it could, or was not asked for. */
  refused: string | null;
  report: BeforeAfter | null;
  /** Of its newest promotion. */
  gate: Gate | null;
  /** Promotions by which it is in production although the gate did not pass. */
  overrides: Deed[];
  history: Deed[];
}

export interface Comparison {
  a: string;
  b: string;
  rows: { figure: string; a: number | string | null; b: number | string | null }[];
}

interface Judged {
  verdict: Verdict;
  labels: string[];
}

export interface Shadow {
  /** 0: ended. */
  share: number;
  boards: number;
  skipped: number;
  /** The newest of them. */
  disagreements: { inspection: string; serial: string | null; production: Judged; candidate: Judged }[];
  num_disagreements: number;
}

export type JobState = "waiting" | "running" | "done" | "failed" | "cancelled";

export interface Job {
  id: string;
  kind: "retrain" | "promote";
  state: JobState;
  created: string;
  started: string | null;
  ended: string | null;
  actor: string;
  request: Partial<RetrainRequest & PromoteRequest> & { version?: string };
  progress: { stage: string; done: number; total: number; eta_s: number | null } | null;
  /** Why it failed, or was not promoted. */
  reason: string;
  /** Gate and table come with the job alone, not in lists. */
  result: {
    version: string;
    is_promoted: boolean;
    /** Promoted although the gate did not pass. */
    is_override: boolean;
    /** null: it was not asked, or could not judge. */
    gate_result: Outcome | null;
    gate: Gate | null;
    table: BeforeAfter | null;
  } | null;
  can_resume: boolean;
  links: { log: string; curves: string };
}

export interface RetrainRequest {
  base: string | null;
  add: string[];
  rename: Record<string, string>;
  retire: string[];
  data: { recipe: string | null; since: string | null; until: string | null };
  replay: "verified" | "drawn";
  note: string;
}

export interface PromoteRequest {
  recipe: string | null;
  reason: string;
  override: boolean;
  /** New name by the one in production; what the lineage tells need not be said. */
  renamed: Record<string, string>;
  retired: string[];
}

export interface CurvePoint {
  step: number;
  [term: string]: unknown;
}

export type Part = "train" | "acceptance";

export interface Example {
  inspection: string;
  kind: "missed" | "reclassified" | "real" | "false_call";
  label: string;
  box_xyxy: Box;
  crop: string;
  part: Part;
  serial: string | null;
}

export interface Examples {
  examples: Example[];
  counts: Record<string, Record<Part, number>>;
}
