// All jobs, the newest first, and the chosen one with what it does and what came of it.

import { link } from "../route";
import { t, time, told } from "../words";
import { Mark } from "./gate";
import { JobPage } from "./job";
import { find, isActive, jobs } from "./state";
import type { Job } from "./wire";

export function JobsTab({ chosen }: { chosen: string }) {
  const all = [...jobs.value].sort((one, other) => other.created.localeCompare(one.created));
  const shown = all.find(({ id }) => id === chosen) ?? all[0];
  if (!shown) return <p class="empty">{t("jobs.none")}</p>;
  return (
    <div class="jobs">
      <ul class="job-list" aria-label={t("models.tab.jobs")}>
        {all.map((job) => (
          <li key={job.id}>
            <Row job={job} isShown={job.id === shown.id} />
          </li>
        ))}
      </ul>
      <JobPage key={shown.id} job={shown} />
    </div>
  );
}

function Row({ job, isShown }: { job: Job; isShown: boolean }) {
  return (
    <a href={link("models", "", { tab: "jobs", job: job.id })} class="job" aria-current={isShown ? "true" : undefined}>
      <span class="line">
        <strong>{jobTitle(job)}</strong>
        <State job={job} />
      </span>
      <small class="line">
        <span>{job.actor || t("recipes.somebody")}</span>
        <time dateTime={job.created}>{time(job.created)}</time>
      </small>
      {job.result?.gate_result && <Mark result={job.result.gate_result} words={gateWords(job.result)} />}
      {job.result?.is_override && <small class="why">{job.request.reason}</small>}
      {job.reason && !job.result?.gate_result && !job.result?.is_override && !isActive(job) && <small class="why">{told(job.reason)}</small>}
    </a>
  );
}

export function State({ job }: { job: Job }) {
  const state = isRefused(job) ? "refused" : job.result?.is_override ? "override" : job.state;
  return (
    <span class="job-state" data-state={state}>
      {t(`jobs.state.${state}`)}
    </span>
  );
}

/** Beside an override stands that it was the gate which said so. */
function gateWords({ is_override, gate_result }: NonNullable<Job["result"]>): string | undefined {
  return is_override ? t("jobs.gate_said", { words: t(`models.result.${gate_result!}`) }) : undefined;
}

/** Done, and the gate did not let it through. */
function isRefused({ kind, state, result }: Job): boolean {
  return kind === "promote" && state === "done" && result !== null && !result.is_promoted;
}

export function jobTitle({ kind, request }: Job): string {
  if (kind === "promote") {
    const where = request.recipe ? t("models.promote.one", { recipe: request.recipe }) : t("models.promote.all");
    return t("jobs.promote", { version: find(request.version)?.name ?? request.version ?? "", where });
  }
  const { add = [], rename = {}, retire = [] } = request;
  const words = [
    ...add.map((label) => `+ ${label}`),
    ...Object.entries(rename).map(([from, to]) => `${from} \u2192 ${to}`),
    ...retire.map((label) => `\u2212 ${label}`),
  ];
  return words.join(", ") || t("jobs.retrain");
}
