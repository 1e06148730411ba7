// Recipes as the service sends them. Zones are in px of the golden reference.

export type Point = [number, number];

export interface Zone {
  name: string;
  polygon: Point[];
}

export interface Target {
  /** null: all classes together. */
  label: string | null;
  max_miss_rate: number;
  confidence: number;
}

export interface Claim extends Target {
  kept: boolean;
  words: string;
}

export interface Calibration {
  model_version: string;
  camera: string | null;
  date: string;
  data: string;
  num_boards: number;
  thresholds: Record<string, number>;
  claims: Claim[];
}

/** The settings; all of them are sent with every change. */
export interface Settings {
  note: string;
  px_per_mm: number | null;
  board_mm: [number, number] | null;
  ignore: Zone[];
  regions: Zone[];
  min_defect_mm: Record<string, number>;
  targets: Target[];
  calibration: Calibration | null;
  camera: string | null;
  model_version: string | null;
}

export interface Reference {
  name: string;
  sha256: string;
  width: number;
  height: number;
  /** Of one that was built from good boards: how each agrees with it. */
  boards: { residual_px: number; difference: number }[];
  picture: string;
}

export interface RecipeReport {
  name: string;
  revision: number;
  created: string;
  actor: string;
  recipe: Settings;
  references: Reference[];
}

export interface ChallengeBoard {
  serial: string;
  labels: string[];
}

export interface Challenge {
  boards: ChallengeBoard[];
  every_hours: number | null;
  shown: string | null;
  state: { locked: boolean; since: string | null; why: string; due: string | null };
}

export const NO_SETTINGS: Settings = {
  note: "",
  px_per_mm: null,
  board_mm: null,
  ignore: [],
  regions: [],
  min_defect_mm: {},
  targets: [],
  calibration: null,
  camera: null,
  model_version: null,
};
