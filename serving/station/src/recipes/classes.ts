// Defect classes that can be named in a recipe: those of the model, as far as the service has said them.

import { computed, signal } from "@preact/signals";
import { draft } from "./draft";
import type { Preview } from "./preview";

export const preview = signal<Preview | null>(null);

export const classes = computed(() => {
  const { calibration, min_defect_mm, targets } = draft.value;
  const named = [
    ...(preview.value?.classes ?? []).map((one) => one.label),
    ...Object.keys(calibration?.thresholds ?? {}),
    ...Object.keys(min_defect_mm),
    ...targets.map((target) => target.label ?? ""),
  ];
  return [...new Set(named)].filter(Boolean).sort();
});
