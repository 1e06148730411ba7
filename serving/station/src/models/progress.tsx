// How far a job is: its stage among all stages, and how long this one still takes.

import { number, t, type Key } from "../words";
import { duration } from "./durations";
import type { Job } from "./wire";

const STAGES: Record<Job["kind"], string[]> = {
  retrain: ["boards", "features", "learning", "thresholds", "measuring"],
  promote: ["export", "inspecting", "gate"],
};

export function Progress({ job }: { job: Job }) {
  const { progress, kind, state } = job;
  if (state === "waiting") return <p class="muted">{t("jobs.waiting")}</p>;
  if (!progress) {
    return (
      <div class="progress">
        <progress aria-label={t("jobs.starting")} />
        <p class="muted">{t("jobs.starting")}</p>
      </div>
    );
  }
  const { stage, done, total, eta_s } = progress;
  const stages = STAGES[kind].includes(stage) ? STAGES[kind] : [stage];
  const share = total > 0 ? Math.min(1, done / total) : undefined; // without one it shows that something goes on
  const words = [
    stages.length === 1 && stageName(stage),
    total > 0 && t("jobs.progress", { done: number(done), total: number(total) }),
    eta_s !== null && t("jobs.eta", { time: duration(eta_s) }),
  ];
  return (
    <div class="progress">
      {stages.length > 1 && (
        <ol class="stages">
          {stages.map((one) => (
            <li key={one} aria-current={one === stage ? "step" : undefined} data-done={stages.indexOf(one) < stages.indexOf(stage)}>
              {stageName(one)}
            </li>
          ))}
        </ol>
      )}
      <progress max={1} value={share} aria-label={stageName(stage)} />
      <p class="muted">{words.filter(Boolean).join(" \u00b7 ")}</p>
    </div>
  );
}

const NAMED = new Set([...STAGES.retrain, ...STAGES.promote]);

/** A stage that the station does not know is named as the service names it. */
function stageName(stage: string): string {
  return NAMED.has(stage) ? t(`jobs.stage.${stage}` as Key) : stage;
}
