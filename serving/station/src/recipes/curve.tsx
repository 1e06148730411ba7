// Misses and false calls of one class against its threshold. The slider is a proposal: nothing is changed by it.

import { useSignal } from "@preact/signals";
import { number, t } from "../words";
import { countsAt, type ClassPreview } from "./preview";

const [WIDTH, HEIGHT, LEFT, TOP] = [640, 92, 44, 14];
const INNER = WIDTH - LEFT - 12;
const MOST_TICKS = 400;

export function Curve({ one }: { one: ClassPreview }) {
  const now = one.threshold ?? 0;
  const proposed = useSignal(now);
  const at = countsAt(one, proposed.value);
  const asNow = countsAt(one, now);
  const steps = [...new Set([now, ...one.real, ...one.false_calls, 1])].filter((x) => x >= now).sort((x, y) => x - y);
  const misses = steps.map((x) => ({ x, y: countsAt(one, x).misses }));
  const falseCalls = steps.map((x) => ({ x, y: countsAt(one, x).false_calls }));
  return (
    <div class="curve">
      <Plot name={t("recipes.curve.misses")} kind="misses" points={misses} rug={one.real} now={now} proposed={proposed.value} />
      <Plot
        name={t("recipes.curve.false_calls")}
        kind="false-calls"
        points={falseCalls}
        rug={one.false_calls}
        now={now}
        proposed={proposed.value}
      />
      <input
        class="proposal"
        type="range"
        min="0"
        max="1"
        step="0.005"
        value={proposed}
        aria-label={t("recipes.curve.proposal")}
        aria-valuetext={number(proposed.value, 3)}
        onInput={(event) => (proposed.value = Math.max(now, event.currentTarget.valueAsNumber))}
      />
      <table class="readout" aria-live="polite">
        <thead>
          <tr>
            <td />
            <th>{t("recipes.curve.threshold")}</th>
            <th>{t("recipes.curve.misses")}</th>
            <th>{t("recipes.curve.false_calls")}</th>
            <th>{t("recipes.curve.bound")}</th>
          </tr>
        </thead>
        <tbody>
          <Row name={t("recipes.curve.now")} threshold={now} counts={asNow} one={one} />
          <Row name={t("recipes.curve.proposal")} threshold={proposed.value} counts={at} one={one} />
        </tbody>
      </table>
      <p class="guarantee">
        {at.miss_bound === null
          ? t("recipes.curve.unknown", { label: one.label })
          : t("recipes.curve.guarantee", { label: one.label, bound: number(100 * at.miss_bound, 1), n: one.boards })}
      </p>
      <p class="muted">{t("recipes.curve.only")}</p>
    </div>
  );
}

interface RowProps {
  name: string;
  threshold: number;
  counts: ReturnType<typeof countsAt>;
  one: ClassPreview;
}

function Row({ name, threshold, counts, one }: RowProps) {
  const [real, all] = [one.real.length + one.missed, one.false_calls.length];
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{number(threshold, 3)}</td>
      <td>{t("recipes.curve.of", { n: counts.misses, all: real })}</td>
      <td>{t("recipes.curve.of", { n: counts.false_calls, all })}</td>
      <td>{counts.miss_bound === null ? "\u2013" : t("recipes.curve.percent", { n: number(100 * counts.miss_bound, 1) })}</td>
    </tr>
  );
}

interface PlotProps {
  name: string;
  kind: "misses" | "false-calls";
  points: { x: number; y: number }[];
  /** Scores of the calls that are counted, as ticks under the line. */
  rug: number[];
  now: number;
  proposed: number;
}

function Plot({ name, kind, points, rug, now, proposed }: PlotProps) {
  const most = Math.max(1, ...points.map((point) => point.y));
  const x = (score: number) => LEFT + score * INNER;
  const y = (count: number) => TOP + (HEIGHT - TOP - 18) * (1 - count / most);
  const floor = y(0);
  // A threshold just over a score counts as the next step does, so the line steps at the score.
  const line = points.reduce((path, point, index) => {
    const up = index === 0 ? `M${x(point.x)} ${y(point.y)}` : `V${y(point.y)}H${x(point.x)}`;
    return path + up;
  }, "");
  return (
    <svg class={`plot ${kind}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={name}>
      <rect class="unknown" x={LEFT} y={TOP} width={now * INNER} height={floor - TOP} />
      <path class="area" d={`${line}V${floor}H${x(points[0]?.x ?? 0)}Z`} />
      <path class="line" d={line} />
      {rug.slice(0, MOST_TICKS).map((score, index) => (
        <path key={index} class="tick" d={`M${x(score)} ${floor + 2}v6`} />
      ))}
      <path class="axis" d={`M${LEFT} ${TOP}V${floor}H${LEFT + INNER}`} />
      <path class="now" d={`M${x(now)} ${TOP - 6}V${floor}`} />
      {proposed > now && <path class="proposed" d={`M${x(proposed)} ${TOP - 6}V${floor}`} />}
      <text x={LEFT - 6} y={TOP + 4} text-anchor="end">
        {number(most)}
      </text>
      <text x={LEFT - 6} y={floor + 3} text-anchor="end">
        0
      </text>
      <text x={kind === "misses" ? LEFT + 6 : LEFT + INNER} y={TOP + 8} text-anchor={kind === "misses" ? "start" : "end"}>
        {name}
      </text>
      {[0, 0.25, 0.5, 0.75, 1].map((score) => (
        <text key={score} x={x(score)} y={HEIGHT - 1} text-anchor="middle">
          {number(score, 2)}
        </text>
      ))}
    </svg>
  );
}
