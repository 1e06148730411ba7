// A queue without boards: nothing was ever inspected, nothing fits the filter, or all is done.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { address, request } from "../api";
import { notifyError } from "../notices";
import { go, link } from "../route";
import type { QueuePage } from "../types";
import { t } from "../words";
import { isNarrowed, type Filter } from "./filter";
import { counts, filter, load } from "./list";
import { inspectSample, listSamples, type Sample } from "./samples";

export function NothingHere({ asked, clear }: { asked: Filter; clear: () => void }) {
  const isEmpty = useSignal<boolean | null>(null);
  useEffect(() => {
    request<QueuePage>(address("/v1/queue", { state: "all", limit: 1 })).then(
      ({ items }) => (isEmpty.value = items.length === 0),
      notifyError,
    );
  }, []);
  if (isEmpty.value === null) return <p class="empty">{t("shell.loading")}</p>;
  if (isEmpty.value) return <FirstVisit />;
  if (isNarrowed(asked)) {
    return (
      <div class="empty">
        <h2>{t("queue.nomatch")}</h2>
        <button type="button" onClick={clear}>
          {t("queue.clearfilter")}
        </button>
      </div>
    );
  }
  return (
    <div class="empty clear">
      <span class="tick" aria-hidden="true">
        {"\u2713"}
      </span>
      <h2>{t("queue.clear")}</h2>
      <p>{t("queue.clear.words", { n: counts.value?.done ?? 0 })}</p>
    </div>
  );
}

function FirstVisit() {
  const samples = useSignal<Sample[]>([]);
  const progress = useSignal("");
  useEffect(() => {
    listSamples().then((found) => (samples.value = found), notifyError);
  }, []);

  async function inspect(some: Sample[]) {
    try {
      for (const [at, sample] of some.entries()) {
        progress.value = t("first.progress", { name: sample.name, n: at + 1, of: some.length });
        const report = await inspectSample(sample);
        if (some.length === 1) return go("board", report.id);
      }
      await load(filter.value);
    } catch (error) {
      notifyError(error);
    } finally {
      progress.value = "";
    }
  }

  const isBusy = progress.value !== "";
  const number = samples.value.length;
  const first = samples.value.slice(0, 1);
  return (
    <div class="first">
      <img src="/station/icon.svg" alt="" width="64" height="64" />
      <h2>{t("first.title")}</h2>
      <ol>
        <li>{t("first.arrive")}</li>
        <li>{t("first.queue")}</li>
        <li>{t("first.review")}</li>
      </ol>
      {number > 0 && (
        <div class="choices">
          <button type="button" class="primary" disabled={isBusy} onClick={() => void inspect(first)}>
            {t("first.sample")}
          </button>
          {number > 1 && (
            <button type="button" disabled={isBusy} onClick={() => void inspect(samples.value)}>
              {t("first.samples", { n: number })}
            </button>
          )}
          <a href={link("inspect")}>{t("first.own")}</a>
        </div>
      )}
      <p role="status" class="muted">
        {progress.value || t("first.keys")}
      </p>
    </div>
  );
}
