// The service's answers, as far as the station reads them. Boxes are [left, top, right, bottom] in px of the
// posted image, right and bottom exclusive.

export type Verdict = "PASS" | "FAIL" | "ERROR";
export type Box = [number, number, number, number];
export type Word = "real" | "false_call" | "process_indicator";
export type Disposition = "rework" | "scrap" | "use_as_is" | "repaired";
export const WORDS: Word[] = ["real", "false_call", "process_indicator"];
export const DISPOSITIONS: Disposition[] = ["rework", "scrap", "use_as_is", "repaired"];

export interface Defect {
  id: number;
  label: string;
  score: number;
  box_xyxy: Box;
  area_px: number;
  size_mm: [number, number] | null;
  place_mm: [number, number] | null;
  gate_share: Record<"4" | "16" | "32", number>;
}

export interface Report {
  id: string;
  created: string;
  verdict: Verdict;
  reasons: string[];
  score: number;
  defects: Defect[];
  num_defects: number | null;
  differences: Box[];
  covered: number;
  image: { width: number; height: number };
  serial: string | null;
  recipe: string | null;
  recipe_revision: number | null;
  actor: string | null;
  attempt: number | null;
  model: { name: string; version: string };
  reference: null | {
    name: string | null;
    residual_px: number | null;
    residual_mm: number | null;
    shift_px: number | null;
    turn_degrees: number | null;
    covered: number | null;
    note: string;
  };
  calibration: Record<string, unknown> | null;
  intake: { format: string; actions: string[]; warnings: string[]; errors: string[] };
  warnings: string[];
  timings_ms: Record<string, number>;
  links: Record<"image" | "defect_map" | "overlay" | "attention" | "evidence" | "gate", string> & { reference: string | null };
}

export interface QueueItem {
  id: string;
  created: string;
  verdict: Verdict;
  serial: string | null;
  recipe: string | null;
  attempt: number | null;
  model_version: string;
  score: number;
  uncertainty: number;
  num_defects: number;
  labels: string[];
  state: "open" | "done";
  disposition: Disposition | null;
  final: "good" | "bad" | null;
  audit: boolean;
  revision: number;
  links: { thumbnail: string; report: string };
}

export interface QueuePage {
  items: QueueItem[];
  next: string | null;
  counts: { open: number; done: number; by_verdict: Record<string, number>; by_label: Record<string, number> };
}

export interface CallWord {
  defect: number;
  word: Word;
  label: string;
}

export interface Missed {
  label: string;
  box_xyxy: Box | null;
  polygon: [number, number][] | null;
}

export interface Review {
  inspection: string;
  revision: number;
  state: "open" | "done";
  calls: CallWord[];
  missed: Missed[];
  checked: boolean;
  disposition: Disposition | null;
  note: string;
  final: "good" | "bad" | null;
  hasty: boolean;
  question: string;
  actor: string | null;
  at: string | null;
  history: { revision: number; kind: "verification" | "disposition"; actor: string | null; at: string }[];
}
