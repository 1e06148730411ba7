// The lot report: which boards it is of, and the report itself.

import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";
import { ask, Filters } from "../figures/filters";
import { spanOf } from "../figures/period";
import { gather, type Lot as Gathered, type LotFilter } from "../lot/gather";
import { LotReport } from "../lot/report";
import { place } from "../route";
import { session } from "../session";
import { number, t } from "../words";
import "../figures/figures.css";
import "../lot/lot.css";

type State =
  | { step: "gathering"; words: string }
  | { step: "failed"; error: ApiError }
  | { step: "here"; lot: Gathered; filter: LotFilter; at: Date };

export function Lot() {
  const query = place.value.query;
  const asked = query.toString();
  const [turn, setTurn] = useState(0);
  const isIn = session.value.state === "in";
  const [state, setState] = useState<State>({ step: "gathering", words: t("shell.loading") });
  useEffect(() => {
    if (!isIn) return undefined; // gathered when they are back
    const stop = new AbortController();
    const at = new Date();
    const filter = { serial: query.get("serial") ?? "", recipe: query.get("recipe") ?? "", ...spanOf(query, at) };
    setState({ step: "gathering", words: t("shell.loading") });
    const tell = (step: "boards" | "reviews", done: number, of: number) => {
      if (!stop.signal.aborted) setState({ step: "gathering", words: t(`lot.gathering.${step}`, { n: number(done), of: number(of) }) });
    };
    gather(filter, tell, stop.signal).then(
      (lot) => setState({ step: "here", lot, filter, at }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setState({ step: "failed", error });
      },
    );
    return () => stop.abort();
  }, [asked, turn, isIn]);
  const isReady = state.step === "here" && state.lot.boards.length > 0;
  return (
    <div class="figures" aria-busy={state.step === "gathering"}>
      <div class="bar-top">
        <h1>{t("figures.lot")}</h1>
        <Filters>
          <Serial />
          <span class="actions">
            <button type="button" class="primary" disabled={!isReady} onClick={() => print()}>
              {t("figures.print")}
            </button>
          </span>
        </Filters>
      </div>
      <div aria-live="polite">{state.step === "gathering" && <p class="empty">{state.words}</p>}</div>
      {state.step === "failed" && (
        <div class="card" role="alert">
          <p class="failed">{state.error.message}</p>
          <p class="muted">{state.error.hint}</p>
          <button type="button" onClick={() => setTurn((one) => one + 1)}>
            {t("shell.retry")}
          </button>
        </div>
      )}
      {state.step === "here" && state.lot.boards.length === 0 && (
        <div class="card empty">
          <h2>{t("lot.empty")}</h2>
          <p>{t("lot.empty.hint")}</p>
        </div>
      )}
      {state.step === "here" && isReady && <LotReport lot={state.lot} filter={state.filter} at={state.at} />}
    </div>
  );
}

/** Asked for when the field is left or Enter is pressed: each letter would gather the lot again. */
function Serial() {
  const kept = place.value.query.get("serial") ?? "";
  const [typed, setTyped] = useState(kept);
  useEffect(() => setTyped(kept), [kept]);
  return (
    <label>
      <span>{t("lot.serial_begins")}</span>
      <input
        type="search"
        class="serial"
        value={typed}
        maxLength={200}
        spellcheck={false}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => ask({ serial: event.currentTarget.value.trim() })}
      />
    </label>
  );
}
