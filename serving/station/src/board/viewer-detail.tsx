// The strip below the stage: the chosen call at its own scale and in figures, or the clicked point.

import type { Defect, Missed } from "../types";
import { number, t } from "../words";
import { Crops } from "./crops";
import { chosenMissed } from "./escape";
import { EscapeDetail } from "./escape-detail";
import { call, LEVELS, point, report, type Level } from "./state";
import { thresholds } from "./thresholds";
import { LookedAt } from "./viewer-looked";

export function Detail() {
  if (point.value) return <PointDetail {...point.value} />;
  if (chosenMissed.value) return <EscapeDetail key={missedKey(chosenMissed.value)} missed={chosenMissed.value} />;
  if (call.value) return <CallDetail key={call.value.id} defect={call.value} />;
  return (
    <section class="detail none" aria-label={t("board.detail")}>
      <p class="muted">{t(report.value?.defects.length ? "board.detail.choose" : "board.detail.nocalls")}</p>
    </section>
  );
}

function missedKey({ box_xyxy, polygon, label }: Missed): string {
  return JSON.stringify([report.value?.id, box_xyxy, polygon, label]);
}

function CallDetail({ defect }: { defect: Defect }) {
  return (
    <section class="detail" aria-label={t("board.detail")}>
      <Crops box={defect.box_xyxy} />
      <Facts defect={defect} />
      <LookedAt box={defect.box_xyxy} />
    </section>
  );
}

function PointDetail({ x, y }: { x: number; y: number }) {
  return (
    <section class="detail" aria-label={t("board.detail")}>
      <Crops box={[x, y, x, y]} />
      <div class="facts">
        <h2>{t("board.point")}</h2>
        <p class="muted">{t("board.point.at", { x: number(x), y: number(y) })}</p>
        <button type="button" class="link" onClick={() => (point.value = null)}>
          {t("board.point.close")} <kbd aria-hidden="true">{t("key.Escape")}</kbd>
        </button>
      </div>
      <LookedAt box={[x, y, x, y]} />
    </section>
  );
}

function Facts({ defect }: { defect: Defect }) {
  const [left, top, right, bottom] = defect.box_xyxy;
  const { size_mm: size, place_mm: place } = defect;
  const [width, height] = [number(right - left), number(bottom - top)];
  return (
    <div class="facts">
      <h2>
        <span class="number">{defect.id}</span> {defect.label}
      </h2>
      <Score defect={defect} />
      <GateShare defect={defect} />
      <p class="size">
        {size && (
          <strong>{t("board.size.mm", { width: number(size[0], 2), height: number(size[1], 2) })} </strong>
        )}
        <span class="muted">{t("board.size.px", { width, height, area: number(defect.area_px) })}</span>
      </p>
      {place && (
        <p class="muted">{t("board.place.mm", { x: number(place[0], 1), y: number(place[1], 1) })}</p>
      )}
    </div>
  );
}

function Score({ defect: { label, score } }: { defect: Defect }) {
  const threshold = thresholds.value[label];
  const words =
    threshold === undefined
      ? t("board.score", { score: number(score, 2) })
      : t("board.score.threshold", { score: number(score, 2), threshold: number(threshold, 2) });
  return (
    <div class="measure">
      <span>{words}</span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="ground" width="100" height="8" />
        <rect class="value" width={100 * score} height="8" />
        {threshold !== undefined && <rect class="mark" x={100 * threshold - 0.6} width="1.2" height="8" />}
      </svg>
    </div>
  );
}

/** The share of each level in this call; it does not say which one brought it about. */
function GateShare({ defect: { gate_share: shares } }: { defect: Defect }) {
  const words = LEVELS.map((level) => t("board.share.level", { level, share: number(100 * shares[level]) }));
  const startOf = (at: Level) =>
    LEVELS.slice(0, LEVELS.indexOf(at)).reduce((sum, level) => sum + shares[level], 0);
  return (
    <div class="measure" title={t("board.legend.gate")}>
      <span>{t("board.share", { shares: words.join(", ") })}</span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        {LEVELS.map((level) => (
          <rect
            key={level}
            class={`level-${level}`}
            x={100 * startOf(level)}
            width={100 * shares[level]}
            height="8"
          />
        ))}
      </svg>
    </div>
  );
}
