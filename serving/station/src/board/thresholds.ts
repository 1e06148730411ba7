// From which score on a call of each class counts, for the open board's model and reference.

import { signal } from "@preact/signals";
import { address, ApiError, request } from "../api";

export const thresholds = signal<Record<string, number>>({});
let owner = "";

/** Known soon after; while the server does not say, scores stand alone. */
export function fetchThresholds(inspection: string, labels: string[]): void {
  if (owner !== inspection) thresholds.value = {};
  owner = inspection;
  for (const label of new Set(labels)) void fetchOne(inspection, label);
}

async function fetchOne(inspection: string, label: string): Promise<void> {
  if (label in thresholds.value) return;
  try {
    const url = address(`/v1/inspections/${inspection}/legend/defect_map`, { label });
    const { threshold } = await request<{ threshold: number | null }>(url);
    if (owner === inspection && threshold !== null) thresholds.value = { ...thresholds.value, [label]: threshold };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
