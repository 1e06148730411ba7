// What the pages of the models ask of the service.

import { address, call, remove, request, send } from "../api";
import type { CurvePoint, Job, Model, PromoteRequest, RetrainRequest } from "./wire";

function of(version: string): string {
  return `/v1/models/${encodeURIComponent(version)}`;
}

export function jobOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}

export async function listModels(): Promise<Model[]> {
  return (await request<{ models: Model[] }>("/v1/models")).models;
}

export async function listJobs(): Promise<Job[]> {
  return (await request<{ jobs: Job[] }>("/v1/jobs")).jobs;
}

export function comparisonOf(version: string, other: string): string {
  return address(`${of(version)}/compare`, { with: other });
}

export function shadowOf(version: string): string {
  return `${of(version)}/shadow`;
}

/** A job that judges the version first; what comes of it is in the job. */
export function promote(version: string, asked: PromoteRequest): Promise<Job> {
  return send("POST", `${of(version)}/promote`, asked);
}

export function rollBack(version: string, recipe: string | null, reason: string): Promise<unknown> {
  return send("POST", `${of(version)}/rollback`, { recipe, reason });
}

export function retire(version: string, reason: string): Promise<unknown> {
  return send("POST", `${of(version)}/retire`, { reason });
}

/** share 0 ends it. */
export function setShadow(version: string, share: number, recipe: string | null): Promise<unknown> {
  return send("POST", `${of(version)}/shadow`, { share, recipe });
}

export function examplesOf(label: string, recipe: string, limit: number): string {
  return address("/v1/examples", { label, recipe, limit });
}

export function startRetraining(asked: RetrainRequest): Promise<Job> {
  return send("POST", "/v1/retrain", asked);
}

export function cancelJob(id: string): Promise<void> {
  return remove(jobOf(id));
}

export function resumeJob(id: string): Promise<Job> {
  return send("POST", `${jobOf(id)}/resume`, {});
}

export async function readLog(id: string): Promise<string> {
  return (await call(`${jobOf(id)}/log`)).text();
}

export async function readCurves(id: string): Promise<CurvePoint[]> {
  return (await request<{ points: CurvePoint[] }>(`${jobOf(id)}/curves`)).points;
}
