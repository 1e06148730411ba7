// Beside the board: what the service says of it, and what a person says of that.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { useBack } from "../back";
import { nameKeys } from "../keys";
import { prepareNext } from "../queue/next";
import { language, t } from "../words";
import { loadClasses } from "./classes";
import { missedAt } from "./escape";
import { isAsking, isNaming, reviewActions } from "./judging";
import { Calls } from "./panel-calls";
import { Conflict, putOff } from "./panel-conflict";
import { FinishQuestion } from "./panel-finish";
import { Foot } from "./panel-foot";
import { Head } from "./panel-head";
import { MissedList } from "./panel-missed";
import { Similar } from "./panel-similar";
import { WordBar } from "./panel-words";
import { openFailed, openReview, review, unjudged, unsent } from "./review";
import { report, selected } from "./state";
import { fetchThresholds } from "./thresholds";
import "./panel.css";

export function ReviewPanel() {
  const opened = report.value;
  const id = opened?.id;
  useEffect(() => {
    isNaming.value = isAsking.value = false;
    missedAt.value = null;
    putOff.value = null;
    if (!opened) return;
    fetchThresholds(opened.id, opened.defects.map(({ label }) => label));
    void prepareNext(opened.id);
  }, [id]);
  const isHere = review.value !== null;
  useEffect(() => {
    const first = opened?.defects[0]?.id ?? null;
    if (isHere && (selected.value === null || selected.value === first)) selected.value = unjudged.value[0] ?? first;
  }, [id, isHere]);
  useBack(() => openFailed.value && opened && void openReview(opened.id));
  useEffect(() => void loadClasses(), []);
  useLayoutEffect(() => nameKeys(reviewActions()), [language.value]);

  if (!opened) return <aside class="panel" aria-label={t("review.title")} aria-busy="true" />;
  return (
    <aside class="panel" aria-label={t("review.title")}>
      <Head report={opened} />
      {openFailed.value && !isHere ? (
        <Failed error={openFailed.value} retry={() => void openReview(opened.id)} />
      ) : (
        <>
          <div class="middle">
            <Calls report={opened} />
            <MissedList />
          </div>
          <WordBar />
          <Similar key={`${id}/${selected.value}`} />
          <Foot />
          {isAsking.value && <FinishQuestion />}
          {unsent.value?.theirs && <Conflict entry={unsent.value} />}
        </>
      )}
    </aside>
  );
}

function Failed({ error, retry }: { error: unknown; retry: () => void }) {
  const { message, hint = "" } = error as { message: string; hint?: string };
  return (
    <div class="empty" role="alert">
      <p>{message}</p>
      <p>{hint}</p>
      <button type="button" onClick={retry}>
        {t("shell.retry")}
      </button>
    </div>
  );
}
