// The versions and jobs that the pages show, read again when the service tells of a change.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { useBack } from "../back";
import { listen } from "../live";
import { listJobs, listModels } from "./calls";
import type { Job, Model } from "./wire";

const EVERY_MS = 3000;

export const models = signal<Model[] | null>(null);
export const jobs = signal<Job[]>([]);
export const trouble = signal<ApiError | null>(null);

export async function load(): Promise<void> {
  try {
    [models.value, jobs.value] = await Promise.all([listModels(), listJobs()]);
    trouble.value = null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    trouble.value = error;
  }
}

export function isActive({ state }: Job): boolean {
  return state === "waiting" || state === "running";
}

export function find(version: string | null | undefined): Model | undefined {
  return models.value?.find((model) => model.version === version);
}

/** Boards are inspected by it: those without a recipe, or those of a recipe that names it. */
export function isInUse({ is_default, recipes }: Model): boolean {
  return is_default || recipes.length > 0;
}

/** What is drawn follows what happens: told by the service, and asked for while a job runs. */
export function useModels(): void {
  useEffect(() => {
    void load();
    const timer = setInterval(() => !document.hidden && jobs.value.some(isActive) && void load(), EVERY_MS);
    const stop = listen({ job: () => void load(), missed: () => void load() });
    return () => {
      clearInterval(timer);
      stop();
    };
  }, []);
  useBack(() => void load());
}

/** A job that was just started or changed, before the next reading brings it. */
export function put(job: Job): void {
  jobs.value = [job, ...jobs.value.filter(({ id }) => id !== job.id)];
}
