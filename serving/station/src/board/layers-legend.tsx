// What the colours over the board mean, with the threshold marked, and whether attention can be believed.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { ApiError } from "../api";
import { number, t, type Key } from "../words";
import { evidenceOf, explained, isAttention, legendOf, type Evidence, type Legend } from "./layers";
import { call, calledLabels, isBare, mapLabel, opacity, overlay, point } from "./state";

const WIDTH = 220;
/** Nearer to a mark, share of the scale, an end has no room for its number. */
const LEAST_APART = 0.18;
const LIKE: Record<string, Key> = {
  "times uniform": "board.unit.uniform",
  "grey levels": "board.unit.grey",
  "of the way": "board.unit.way",
};

/** Shares have no unit. */
function inWords(unit = ""): string {
  const key = LIKE[unit];
  return key ? t(key) : "";
}

export function LayersLegend() {
  const legend = useSignal<Legend | null>(null);
  useSignalEffect(() => {
    const layer = explained.value;
    const label = layer === "defect_map" ? mapLabel.value : "";
    legend.value = null;
    let isCurrent = true;
    if (layer) {
      legendOf(layer, label).then(
        (found) => isCurrent && (legend.value = found),
        () => {}, // the layer itself says what is wrong
      );
    }
    return () => (isCurrent = false);
  });
  const layer = explained.value;
  if (!layer || isBare.value) return null;
  return (
    <div class="legend">
      <h2>
        {t(`board.layer.${layer}`)} <span>{inWords(legend.value?.unit)}</span>
      </h2>
      {legend.value && layer === "gate" && <Swatches legend={legend.value} />}
      {legend.value && layer !== "gate" && <Scale legend={legend.value} />}
      <p>{t(`board.legend.${layer.startsWith("attention") ? "attention" : layer}` as Key)}</p>
      {isAttention(overlay.value) && <EvidenceLine />}
      {overlay.value && <Controls />}
    </div>
  );
}

function Controls() {
  return (
    <div class="controls">
      {overlay.value === "defect_map" && (
        <select
          aria-label={t("board.maplabel")}
          value={mapLabel.value}
          onChange={(event) => (mapLabel.value = event.currentTarget.value)}
        >
          <option value="">{t("board.maplabel.all")}</option>
          {calledLabels.value.map((label) => (
            <option key={label} value={label}>
              {label}
            </option>
          ))}
        </select>
      )}
      <kbd aria-hidden="true">[</kbd>
      <input
        type="range"
        min="0.1"
        max="1"
        step="0.1"
        value={opacity.value}
        aria-label={t("board.opacity")}
        onInput={(event) => (opacity.value = Number(event.currentTarget.value))}
      />
      <kbd aria-hidden="true">]</kbd>
    </div>
  );
}

function Scale({ legend: { stops, threshold, unit } }: { legend: Legend }) {
  const first = stops[0]?.value ?? 0;
  const last = stops.at(-1)?.value ?? 1;
  // Colours stand at even steps of the drawn scale, so a value lies between those of its neighbours.
  const at = (value: number) => {
    const after = stops.findIndex((stop) => stop.value >= value);
    const [low, high] = [stops[after - 1], stops[after]];
    if (!low || !high) return after === 0 ? 0 : 1;
    return (after - 1 + (value - low.value) / (high.value - low.value || 1)) / (stops.length - 1);
  };
  const marks = threshold === null ? [] : unit === "grey levels" ? [-threshold, threshold] : [threshold];
  const isFree = (end: number) => marks.every((mark) => Math.abs(at(mark) - end) > LEAST_APART);
  const words = scaleWords(first, last, threshold, unit);
  return (
    <svg class="scale" width={WIDTH} height="40" role="img" aria-label={words}>
      <defs>
        <linearGradient id="legend-colours">
          {stops.map(({ rgba: [red, green, blue, alpha] }, index) => (
            <stop
              key={index}
              offset={index / (stops.length - 1)}
              stop-color={`rgb(${red} ${green} ${blue})`}
              stop-opacity={Math.max(alpha / 255, 0.06)}
            />
          ))}
        </linearGradient>
      </defs>
      <rect class="ground" y="6" width={WIDTH} height="12" rx="2" />
      <rect y="6" width={WIDTH} height="12" rx="2" fill="url(#legend-colours)" />
      {marks.map((mark) => (
        <g key={mark} class="mark" transform={`translate(${WIDTH * at(mark)} 0)`}>
          <path d="M0 1V21" />
          <text y="36" text-anchor="middle">
            {short(mark)}
          </text>
        </g>
      ))}
      {isFree(0) && <End at={0} anchor="start" value={first} />}
      {isFree(1) && <End at={WIDTH} anchor="end" value={last} />}
    </svg>
  );
}

function End({ at, anchor, value }: { at: number; anchor: "start" | "end"; value: number }) {
  return (
    <text x={at} y="36" text-anchor={anchor}>
      {short(value)}
    </text>
  );
}

function scaleWords(first: number, last: number, threshold: number | null, unit: string): string {
  const values = { first: short(first), last: short(last), unit: inWords(unit) };
  if (threshold === null) return t("board.scale", values);
  return t("board.scale.threshold", { ...values, threshold: short(threshold) });
}

function short(value: number): string {
  return Number.isInteger(value) ? number(value) : number(value, 2);
}

function Swatches({ legend }: { legend: Legend }) {
  return (
    <ul class="swatches">
      {legend.stops.map(({ rgba: [red, green, blue], name }) => (
        <li key={name}>
          <svg width="14" height="14" aria-hidden="true">
            <rect width="14" height="14" rx="3" fill={`rgb(${red} ${green} ${blue})`} />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** Of attention that is shown: whether the call hangs on what it points at. */
function EvidenceLine() {
  const told = useSignal<Evidence | "testing" | "none" | ApiError>("testing");
  useSignalEffect(() => {
    const map = overlay.value;
    const defect = call.value?.id;
    if (point.value || defect === undefined || !map) {
      told.value = "none";
      return undefined;
    }
    told.value = "testing";
    const stop = new AbortController();
    evidenceOf(map, defect, stop.signal).then(
      (found) => (told.value = found ?? "none"),
      (error: unknown) => {
        if (error instanceof ApiError) told.value = error;
      },
    );
    return () => stop.abort();
  });
  const words = useComputed(() => {
    const found = told.value;
    if (found === "testing") return t("board.evidence.testing");
    if (found === "none") return t("board.evidence.none");
    if (found instanceof ApiError) return `${found.message} ${found.hint}`;
    const values = {
      score: number(found.score, 2),
      without: number(found.score_without, 2),
      random: number(found.score_without_random, 2),
    };
    return t(found.reliable ? "board.evidence.reliable" : "board.evidence.doubt", values);
  });
  const isDoubted = useComputed(() => {
    const found = told.value;
    return typeof found === "object" && "reliable" in found && !found.reliable;
  });
  return (
    <p class={isDoubted.value ? "evidence doubt" : "evidence"} role="status">
      {words}
    </p>
  );
}
