// GET /v1/stats and what hangs on it, as far as the station reads them.

/** A count and what it is a share of. */
export interface Rate {
  count: number;
  of: number;
  value: number | null;
  ppm: number | null;
  /** 95 % interval of a share of boards. */
  lower: number | null;
  upper: number | null;
}

export interface ParetoLine {
  /** null: inspected without a recipe. */
  name: string | null;
  calls: number;
  real: number;
  false_calls: number;
  process_indicators: number;
  missed: number;
  share: number;
  cumulative: number;
}

export interface Spot {
  x: number;
  y: number;
  label: string;
  word: "real" | "false_call" | "process_indicator" | null;
  /** Whose px; empty: of the posted picture. */
  reference: string;
}

export interface TrendPoint {
  start: string;
  boards: number;
  first_pass_yield: number | null;
  false_call_rate: number | null;
  lower: number | null;
  upper: number | null;
  out_of_control: boolean;
}

export interface Stats {
  since: string;
  until: string;
  /** Earlier than `since` where boards of the days between were deleted. */
  asked_since: string;
  recipe: string | null;
  bucket: "hour" | "day";
  boards: {
    inspected: number;
    passed: number;
    failed: number;
    not_inspected: number;
    first: number;
    without_serial: number;
    failed_open: number;
    hasty: number;
    challenge: number;
  };
  first_pass_yield: { before_review: Rate; after_review: Rate };
  /** `rates`: per board, per panel side of 18 x 24 inch, per mm2. */
  false_calls: { count: number; boards: Rate; rates: [Rate, Rate, Rate] };
  escapes: { boards: Rate; by_review: number; by_test: number; missed_defects: number };
  by_label: ParetoLine[];
  by_recipe: ParetoLine[];
  references: { name: string; width: number; height: number }[];
  places: Spot[];
  num_places: number;
  trend: TrendPoint[];
  audit: { drawn: number; reviewed: number; escapes: number; escape_rate: Rate };
  agreement: { calls: number; agreed: number; kappa: number | null };
}

export interface ImportReport {
  rows: number;
  matched: number;
  unmatched: number;
  escapes: { serial: string; inspection: string }[];
}

export interface RecipeReport {
  name: string;
  revision: number;
  references: { name: string; width: number; height: number; picture: string }[];
}
