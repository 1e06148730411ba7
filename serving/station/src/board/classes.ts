// Names of defect classes that may be meant, for type-ahead: what was ever called, and what people typed here.

import { computed, signal } from "@preact/signals";
import { address, ApiError, request } from "../api";
import type { QueuePage } from "../types";
import { report } from "./state";

const KEPT = "station.classes";
const MOST_KEPT = 100;

const typed = signal<string[]>(JSON.parse(localStorage.getItem(KEPT) ?? "[]") as string[]);
const called = signal<string[]>([]);

export const knownClasses = computed<string[]>(() => {
  const here = (report.value?.defects ?? []).map(({ label }) => label);
  return [...new Set([...here, ...called.value, ...typed.value])].sort((one, other) => one.localeCompare(other));
});

/** Remember a name that a person used. */
export function learnClass(label: string): void {
  const name = label.trim().normalize("NFC");
  if (!name || knownClasses.value.includes(name)) return;
  typed.value = [...typed.value, name].slice(-MOST_KEPT);
  localStorage.setItem(KEPT, JSON.stringify(typed.value));
}

/** Read the classes that boards were called for. Type-ahead does without them while the server does not answer. */
export async function loadClasses(): Promise<void> {
  if (called.value.length) return;
  try {
    const { counts } = await request<QueuePage>(address("/v1/queue", { state: "all", limit: 1 }));
    called.value = Object.keys(counts.by_label);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
