// One job: how far it is, its curves as they grow, its log, and at the end what came of it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { useLoaded } from "../figures/load";
import { notifyError } from "../notices";
import { sentence } from "../refusal";
import { link } from "../route";
import { may } from "../session";
import { t, time, told } from "../words";
import { cancelJob, jobOf, readCurves, readLog, resumeJob } from "./calls";
import { GateCard } from "./gate";
import { jobTitle, State } from "./jobs";
import { Losses } from "./losses";
import { Progress } from "./progress";
import { find, isActive, load, put } from "./state";
import { BeforeAfterCard } from "./table";
import type { CurvePoint, Job } from "./wire";

const EVERY_MS = 2000;
const STATES: Job["state"][] = ["waiting", "running", "done", "failed", "cancelled"];

export function JobPage({ job }: { job: Job }) {
  const { request } = job;
  // The list has no tables; they come when the job is over.
  const { data } = useLoaded<Job>(jobOf(job.id), STATES.indexOf(job.state));
  const result = data?.result ?? job.result;
  const made = job.kind === "retrain" ? result?.version : request.version;
  return (
    <section class="job-page" aria-label={jobTitle(job)}>
      <header class="version-head">
        <div>
          <h2>
            {jobTitle(job)} <State job={job} />
          </h2>
          <p class="muted">
            {t("jobs.asked", { who: job.actor || t("recipes.somebody"), when: time(job.created) })}
            {request.note && ` \u00b7 ${request.note}`}
          </p>
        </div>
        {may("engineer") && <Deeds job={job} />}
      </header>
      <div class="card now" aria-live="polite">
        {isActive(job) && <Progress job={job} />}
        {job.state === "done" && <Done job={job} made={made ?? null} />}
        {(job.state === "failed" || job.state === "cancelled") && (
          <p class="refused">{job.reason ? sentence(told(job.reason)) : t(job.can_resume ? "jobs.cancelled" : `jobs.state.${job.state}`)}</p>
        )}
      </div>
      {job.kind === "retrain" && <Curves job={job} />}
      <div class="version-cards">
        {result?.table && <BeforeAfterCard table={result.table} />}
        {result?.gate && <GateCard gate={result.gate} />}
      </div>
      <Log id={job.id} isGrowing={isActive(job)} />
    </section>
  );
}

function Done({ job, made }: { job: Job; made: string | null }) {
  const model = find(made);
  return (
    <p>
      {doneWords(job)} {job.reason && !job.result?.gate_result && sentence(told(job.reason))}{" "}
      {made && (
        <a class="button primary" href={link("models", made)}>
          {t("jobs.tocandidate", { name: model?.name ?? made })}
        </a>
      )}
    </p>
  );
}

function doneWords({ kind, actor, request, result }: Job): string {
  if (kind === "retrain") return t("jobs.done.retrain");
  if (result?.is_override && result.gate_result) {
    return t("jobs.done.override", { who: actor || t("recipes.somebody"), why: request.reason ?? "" });
  }
  return t(result?.is_promoted ? "jobs.done.promote" : "jobs.done.refused");
}

function Deeds({ job }: { job: Job }) {
  const isBusy = useSignal(false);
  // It still saves what it has learnt.
  const isCancelled = useSignal(false);
  const cancel = async () => {
    await cancelJob(job.id);
    isCancelled.value = true;
  };
  const resume = async () => {
    put(await resumeJob(job.id));
    isCancelled.value = false;
  };
  const go = async (deed: () => Promise<void>) => {
    isBusy.value = true;
    try {
      await deed();
      await load();
    } catch (error) {
      notifyError(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <div class="deeds">
      {isActive(job) && (
        <button type="button" disabled={isBusy.value || isCancelled.value} onClick={() => void go(cancel)}>
          {t(isCancelled.value ? "jobs.cancelling" : "jobs.cancel")}
        </button>
      )}
      {job.can_resume && (
        <button type="button" class="primary" disabled={isBusy.value} onClick={() => void go(resume)}>
          {t("jobs.resume")}
        </button>
      )}
    </div>
  );
}

/** Asked for as long as the job runs. A job that failed before its first step has none. */
function Curves({ job }: { job: Job }) {
  const points = useSignal<CurvePoint[]>([]);
  const isRunning = job.state === "running";
  useEffect(() => {
    let isOver = false;
    const read = () =>
      readCurves(job.id).then(
        (found) => isOver || (points.value = found),
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
        },
      );
    void read();
    const timer = isRunning ? setInterval(() => document.hidden || void read(), EVERY_MS) : undefined;
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [job.id, isRunning]);
  if (points.value.length < 2) return null;
  return (
    <section class="card losses" aria-label={t("jobs.curves")}>
      <h3>{t("jobs.curves")}</h3>
      <Losses points={points.value} />
    </section>
  );
}

function Log({ id, isGrowing }: { id: string; isGrowing: boolean }) {
  const text = useSignal<string | null>(null);
  const isOpen = useSignal(false);
  useEffect(() => {
    if (!isOpen.value) return undefined;
    const read = () =>
      readLog(id).then(
        (found) => (text.value = found),
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          text.value = `${error.message} ${error.hint}`;
        },
      );
    void read();
    const timer = isGrowing ? setInterval(() => void read(), EVERY_MS) : undefined;
    return () => clearInterval(timer);
  }, [id, isOpen.value, isGrowing]);
  return (
    <details class="log" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{t("jobs.log")}</summary>
      <pre tabIndex={0} aria-label={t("jobs.log")}>
        {text.value === "" ? t("jobs.log.empty") : (text.value ?? t("shell.loading"))}
      </pre>
    </details>
  );
}
