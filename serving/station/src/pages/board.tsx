// One board: what was called and what it looks like, and beside it what a person says of it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { useBack } from "../back";
import { LayersBar } from "../board/layers-bar";
import { ReviewPanel } from "../board/panel";
import { openReview } from "../board/review";
import { close, grid, openBoard, report, selected } from "../board/state";
import { Detail } from "../board/viewer-detail";
import { stageActions } from "../board/viewer-keys";
import { Stage } from "../board/viewer-stage";
import { nameKeys } from "../keys";
import { listen } from "../live";
import { link, place } from "../route";
import { outbox } from "../sending";
import { language, t } from "../words";
import "../board/viewer.css";
import "../board/viewer-detail.css";

export function Board() {
  const id = place.value.subject;
  const failed = useSignal<ApiError | null>(null);
  const tries = useSignal(0);
  useEffect(() => {
    failed.value = null;
    const stop = new AbortController();
    openBoard(id, { signal: stop.signal }).then(chooseNamed, (error: unknown) => {
      if (error instanceof ApiError) failed.value = error;
      else if (!stop.signal.aborted) throw error;
    });
    void openReview(id); // beside the report, so that no key has to wait for it
    return () => stop.abort();
  }, [id, tries.value]);
  useBack(() => failed.value && (tries.value += 1));
  // The server is there again: the board opens by itself.
  useEffect(() => listen({ missed: () => failed.value?.status === 0 && (tries.value += 1) }), []);
  useEffect(() => close, []);
  useEffect(() => nameKeys(stageActions()), [language.value]);

  if (failed.value) return <Failure id={id} error={failed.value} onRetry={() => (tries.value += 1)} />;
  const isOpen = report.value && grid.value;
  return (
    <div class="board-page">
      <section class="viewer" aria-label={t("board.viewer")}>
        <LayersBar />
        {isOpen ? <Stage grid={grid.value!} /> : <div class="stage" aria-busy="true" />}
        {isOpen ? <Detail /> : <section class="detail none" />}
      </section>
      <ReviewPanel />
    </div>
  );
}

/** A link to a board may name one of its calls. */
function chooseNamed(): void {
  const named = Number(place.value.query.get("defect"));
  if (report.value?.defects.some((defect) => defect.id === named)) selected.value = named;
}

function Failure({ id, error, onRetry }: { id: string; error: ApiError; onRetry: () => void }) {
  // Words on a board that is gone can be sent to nobody, and only here be let go.
  const refused = outbox.entries.value.find((entry) => entry.inspection === id)?.refused;
  return (
    <div class="empty" role="alert">
      <h2>{error.status === 404 ? t("board.unknown") : error.message}</h2>
      <p>{error.status === 404 ? t("board.unknown.hint") : error.hint}</p>
      <p>
        {error.status !== 404 && (
          <button type="button" class="primary" onClick={onRetry}>
            {t("shell.retry")}
          </button>
        )}{" "}
        <a href={link("queue")}>{t("board.toqueue")}</a>
      </p>
      {refused && (
        <p>
          {t("review.refused", { why: refused })}{" "}
          <button type="button" onClick={() => outbox.drop(id)}>
            {t("review.refused.drop")}
          </button>
        </p>
      )}
    </div>
  );
}
