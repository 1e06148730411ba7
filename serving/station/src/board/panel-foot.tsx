// What happens to the board, whether all of it is on the server, and the way on.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { outbox } from "../sending";
import { DISPOSITIONS } from "../types";
import { t, time } from "../words";
import { finish } from "./judging";
import { putOff } from "./panel-conflict";
import { review, setDisposition, setNote, undo, unsent } from "./review";

export function Foot() {
  const now = review.value;
  if (!now) return null;
  return (
    <footer class="foot">
      <div class="row">
        <h3 id="disposition">{t("review.disposition")}</h3>
        <small>{t(`review.final.${now.final ?? "open"}`)}</small>
      </div>
      <div class="dispositions" role="group" aria-labelledby="disposition">
        {DISPOSITIONS.map((disposition, index) => {
          const isChosen = now.disposition === disposition;
          return (
            <button
              type="button"
              key={disposition}
              aria-pressed={isChosen}
              onClick={() => setDisposition(isChosen ? null : disposition)}
            >
              {t(`disposition.${disposition}`)} <kbd>{index + 1}</kbd>
            </button>
          );
        })}
      </div>
      <Note key={now.inspection} note={now.note} />
      <div class="row go">
        <button type="button" onClick={undo}>
          {t("review.undo")} <kbd>U</kbd>
        </button>
        <button type="button" class="primary" onClick={finish}>
          {t("review.finish")} <kbd>{t("key.Enter")}</kbd>
        </button>
      </div>
      <Standing />
    </footer>
  );
}

function Note({ note }: { note: string }) {
  const typed = useSignal(note);
  useEffect(() => {
    typed.value = note;
  }, [note]);
  return (
    <input
      class="note"
      type="text"
      aria-label={t("review.note")}
      placeholder={t("review.note")}
      maxLength={2000}
      autocomplete="off"
      value={typed}
      onInput={(event) => (typed.value = event.currentTarget.value)}
      onBlur={() => typed.value.trim() !== note && setNote(typed.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}

/** Who said what, and whether the server has it. */
function Standing() {
  const now = review.value!;
  const waiting = unsent.value;
  if (waiting?.theirs) {
    return (
      <p class="refused" role="alert">
        {t("outbox.conflict", { name: waiting.name })}{" "}
        <button type="button" class="link" onClick={() => (putOff.value = null)}>
          {t("review.conflict.compare")}
        </button>
      </p>
    );
  }
  if (waiting?.refused) {
    return (
      <p class="refused" role="alert">
        {t("review.refused", { why: waiting.refused })}{" "}
        <button type="button" class="link" onClick={() => outbox.drop(now.inspection)}>
          {t("review.refused.drop")}
        </button>
      </p>
    );
  }
  const said = [t(now.state === "done" ? "review.saved.done" : "review.saved"), now.actor, now.at && time(now.at)];
  const saved = now.revision ? said.filter(Boolean).join(" \u00b7 ") : t("review.nobody");
  return (
    <details class="history">
      <summary>
        <span role="status">
          {waiting ? t(outbox.isOffline.value ? "review.kept" : "review.sending") : saved}
        </span>
      </summary>
      <ol>
        {now.history.toReversed().map(({ revision, kind, actor, at }) => (
          <li key={revision}>
            <span>{actor || t("review.somebody")}</span> {t(`review.kind.${kind}`)} <small>{time(at)}</small>
          </li>
        ))}
      </ol>
      {now.hasty && <p class="warn">{t("review.hasty")}</p>}
    </details>
  );
}
