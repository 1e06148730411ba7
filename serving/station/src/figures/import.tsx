// Results of in-circuit or functional test, by serial: the table is sent as it is, and what it showed is told.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ApiError, request } from "../api";
import { link } from "../route";
import { number, t } from "../words";
import { Panel } from "./plot";
import type { ImportReport } from "./types";

type State =
  | { step: "ready" }
  | { step: "sending"; name: string }
  | { step: "failed"; name: string; words: string; hint: string }
  | { step: "done"; name: string; report: ImportReport };

const MOST_SHOWN = 10;

export function TestImport({ onImported }: { onImported: () => void }) {
  const state = useSignal<State>({ step: "ready" });
  const isOver = useSignal(false);
  const field = useRef<HTMLInputElement>(null);

  async function take(file: File | undefined): Promise<void> {
    if (!file || state.value.step === "sending") return;
    const name = file.name;
    state.value = { step: "sending", name };
    try {
      const headers = { "Content-Type": "text/csv" };
      const report = await request<ImportReport>("/v1/test-results", { method: "POST", body: file, headers });
      state.value = { step: "done", name, report };
      onImported();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      state.value = { step: "failed", name, words: error.message, hint: error.hint };
    } finally {
      // The same file, corrected, can be chosen again.
      if (field.current) field.current.value = "";
    }
  }

  const drop = (event: DragEvent) => {
    event.preventDefault();
    isOver.value = false;
    void take(event.dataTransfer?.files[0]);
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    isOver.value = true;
  };
  return (
    <Panel name={t("figures.import")} kind="import">
      <label class={`drop ${isOver.value ? "over" : ""}`} onDragOver={over} onDragLeave={() => (isOver.value = false)} onDrop={drop}>
        <input
          ref={field}
          type="file"
          accept=".csv,text/csv"
          onChange={(event) => void take(event.currentTarget.files?.[0])}
        />
        <b>{t("figures.import.drop")}</b>
        <span class="muted">{t("figures.import.columns")}</span>
      </label>
      <div aria-live="polite">
        <Told state={state.value} />
      </div>
    </Panel>
  );
}

function Told({ state }: { state: State }) {
  if (state.step === "ready") return null;
  if (state.step === "sending") return <p>{t("figures.import.sending", { name: state.name })}</p>;
  if (state.step === "failed") {
    return (
      <div class="failed" role="alert">
        <p>{t("figures.import.failed", { name: state.name, words: state.words })}</p>
        {state.hint && <p class="muted">{state.hint}</p>}
      </div>
    );
  }
  const { rows, matched, unmatched, escapes } = state.report;
  return (
    <div>
      <p>
        {t("figures.import.done", {
          name: state.name,
          rows: number(rows),
          matched: number(matched),
          unmatched: number(unmatched),
        })}
      </p>
      {escapes.length === 0 ? (
        <p>{t("figures.import.no_escapes")}</p>
      ) : (
        <>
          <p class="failed">{t("figures.import.escapes", { n: number(escapes.length) })}</p>
          <ul class="escaped">
            {escapes.slice(0, MOST_SHOWN).map(({ serial, inspection }) => (
              <li key={inspection}>
                <a href={link("board", inspection)}>{serial}</a>
              </li>
            ))}
          </ul>
          {escapes.length > MOST_SHOWN && <p class="muted">{t("figures.more", { n: number(escapes.length - MOST_SHOWN) })}</p>}
        </>
      )}
    </div>
  );
}
