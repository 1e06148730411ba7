// The calls, highest score first: class, score against its threshold, size, and what was said of each.

import { useEffect, useRef } from "preact/hooks";
import type { Defect, Report } from "../types";
import { number, t } from "../words";
import { judgeRest } from "./judging";
import { unjudged, wordOf } from "./review";
import { selected } from "./state";
import { thresholds } from "./thresholds";

export function Calls({ report }: { report: Report }) {
  const { defects } = report;
  const rest = unjudged.value.length;
  if (!defects.length) {
    return <p class="nocalls">{t(report.verdict === "ERROR" ? "review.calls.error" : "review.calls.none")}</p>;
  }
  const listed = report.num_defects ?? defects.length;
  return (
    <section class="calls" aria-label={t("review.calls")}>
      <div class="row">
        <h3>{t("review.calls")}</h3>
        <small role="status">{t("review.judged", { n: defects.length - rest, of: defects.length })}</small>
        {rest > 1 && (
          <span class="rest">
            <button type="button" class="small" onClick={() => judgeRest("real")}>
              {t("review.allreal")} <kbd>E</kbd>
            </button>
            <button type="button" class="small" onClick={() => judgeRest("false_call")}>
              {t("review.allfalse")} <kbd>W</kbd>
            </button>
          </span>
        )}
      </div>
      {listed > defects.length && (
        <small class="more">{t("review.listed", { n: number(listed), listed: number(defects.length) })}</small>
      )}
      <ol>
        {defects.map((defect) => (
          <Row key={defect.id} defect={defect} />
        ))}
      </ol>
    </section>
  );
}

function Row({ defect }: { defect: Defect }) {
  const button = useRef<HTMLButtonElement>(null);
  const isChosen = selected.value === defect.id;
  const said = wordOf(defect.id);
  useEffect(() => {
    if (isChosen) button.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  return (
    <li>
      <button
        ref={button}
        type="button"
        aria-pressed={isChosen}
        class={said ? `callrow said ${said.word}` : "callrow"}
        onClick={() => (selected.value = defect.id)}
      >
        <span class="number">{defect.id}</span>
        <span class="label">
          {said && said.label !== defect.label ? (
            <>
              <s>{defect.label}</s> {said.label}
            </>
          ) : (
            defect.label
          )}
        </span>
        <Score defect={defect} />
        <small class="size">
          {size(defect)} {"\u00b7"} {share(defect)}
        </small>
        <span class="word">{said ? t(`word.${said.word}`) : ""}</span>
      </button>
    </li>
  );
}

function Score({ defect: { label, score } }: { defect: Defect }) {
  const threshold = thresholds.value[label];
  const words = threshold === undefined ? "review.score" : "review.score.threshold";
  const value = number(score, 2);
  const title = t(words, { score: value, threshold: number(threshold ?? 0, 2) });
  return (
    <span class="scorebar" title={title}>
      {value}
      <span class="track" aria-hidden="true">
        <span style={{ width: `${100 * score}%` }} />
        {threshold !== undefined && <i style={{ left: `${100 * threshold}%` }} />}
      </span>
    </span>
  );
}

function size({ size_mm: mm, box_xyxy: [left, top, right, bottom] }: Defect): string {
  if (mm) return t("review.mm", { width: number(mm[0], 2), height: number(mm[1], 2) });
  return t("review.px", { width: number(right - left), height: number(bottom - top) });
}

/** The level with the largest share in the call. */
function share({ gate_share: shares }: Defect): string {
  const [level, largest] = Object.entries(shares).sort((one, other) => other[1] - one[1])[0]!;
  return t("review.share", { level, share: number(100 * largest) });
}
