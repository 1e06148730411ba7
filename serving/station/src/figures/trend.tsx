// First-pass yield over time within its control limits, and below it the false calls per board.

import { language, number, t } from "../words";
import { figure, moment, percent } from "./format";
import { Behind, Key, Panel, useWidth } from "./plot";
import { floorOfShares, linear, roof, runs, ticks } from "./scale";
import type { Stats, TrendPoint } from "./types";

const LEFT = 52, RIGHT = 14, TOP = 10, YIELD_HEIGHT = 150, GAP = 26, FALSE_HEIGHT = 70, BOTTOM = 24;
const HEIGHT = TOP + YIELD_HEIGHT + GAP + FALSE_HEIGHT + BOTTOM;
const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 };
const PX_PER_DATE = 96;

export function Trend({ stats }: { stats: Stats }) {
  const { box, width } = useWidth(760);
  const points = stats.trend;
  const outside = points.filter((point) => point.out_of_control).length;
  return (
    <Panel name={t("figures.trend")} kind="trend">
      {points.length === 0 ? (
        <p class="empty">{t("figures.nothing")}</p>
      ) : (
        <>
          <div ref={box} class="plot">
            <Plot stats={stats} width={width} />
          </div>
          <p class="keys">
            <Key kind="yield" words={t("figures.trend.yield")} />
            <Key kind="limits" words={t("figures.trend.limits")} />
            <Key kind="outside" words={t("figures.trend.outside", { n: number(outside) })} />
            <Key kind="false" words={t("figures.trend.false")} />
          </p>
          <Behind
            name={t("figures.trend")}
            head={[
              t(stats.bucket === "day" ? "figures.trend.day" : "figures.trend.hour"),
              t("figures.trend.boards"),
              t("figures.trend.yield"),
              t("figures.trend.limits"),
              t("figures.trend.in_control"),
              t("figures.trend.false"),
            ]}
            rows={points.map((point) => [
              moment(point.start, stats.bucket),
              number(point.boards),
              percent(point.first_pass_yield),
              limitsText(point),
              t(point.out_of_control ? "figures.no" : "figures.yes"),
              figure(point.false_call_rate),
            ])}
          />
        </>
      )}
    </Panel>
  );
}

function Plot({ stats, width }: { stats: Stats; width: number }) {
  const points = stats.trend;
  const half = BUCKET_MS[stats.bucket] / 2;
  const at = (point: TrendPoint) => new Date(point.start).getTime() + half;
  const first = Math.min(...points.map(at)) - half;
  const last = Math.max(...points.map(at)) + half;
  const x = linear([first, last], [LEFT, width - RIGHT]);
  const shares = points.flatMap((point) => [point.first_pass_yield, point.lower]).filter((one) => one !== null);
  const bottom = floorOfShares(shares);
  const y = linear([bottom, 1], [TOP + YIELD_HEIGHT, TOP]);
  const most = roof(points.map((point) => point.false_call_rate ?? 0));
  const base = TOP + YIELD_HEIGHT + GAP + FALSE_HEIGHT;
  const z = linear([0, most], [base, base - FALSE_HEIGHT]);
  const barWidth = Math.max(2, Math.min(22, (x(first + 2 * half) - x(first)) * 0.6));
  return (
    <svg
      width={width}
      height={HEIGHT}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      role="img"
      aria-label={t("figures.trend.summary", {
        n: number(points.length),
        outside: number(points.filter((point) => point.out_of_control).length),
      })}
    >
      {ticks(bottom, 1, 4).map((share) => (
        <Line key={share} y={y(share)} width={width} words={percent(share, bottom >= 0.95 ? 1 : 0)} />
      ))}
      {[0, most].map((rate) => (
        <Line key={rate} y={z(rate)} width={width} words={figure(rate)} />
      ))}
      <Dates bucket={stats.bucket} first={first} last={last} x={x} width={width} />
      {points.map((point) =>
        point.lower === null || point.upper === null ? null : (
          <rect
            key={point.start}
            class="limits"
            x={x(at(point) - half)}
            width={Math.max(1, x(at(point) + half) - x(at(point) - half) + 0.5)}
            y={y(point.upper)}
            height={Math.max(1, y(Math.max(point.lower, bottom)) - y(point.upper))}
          />
        ),
      )}
      {runs(points, (point) => point.first_pass_yield !== null).map((run) => (
        <polyline
          key={run[0]!.start}
          class="yield"
          points={run.map((point) => `${x(at(point))},${y(point.first_pass_yield!)}`).join(" ")}
        />
      ))}
      {points.map((point) => (
        <g key={point.start}>
          <rect
            class="false"
            x={x(at(point)) - barWidth / 2}
            width={barWidth}
            y={z(point.false_call_rate ?? 0)}
            height={base - z(point.false_call_rate ?? 0)}
          />
          {point.first_pass_yield !== null && (
            <Mark x={x(at(point))} y={y(point.first_pass_yield)} isOutside={point.out_of_control} />
          )}
          <rect class="hit" x={x(at(point) - half)} width={x(at(point) + half) - x(at(point) - half)} y={0} height={base}>
            <title>
              {t("figures.trend.point", {
                when: moment(point.start, stats.bucket),
                boards: number(point.boards),
                share: percent(point.first_pass_yield),
                limits: limitsText(point),
                rate: figure(point.false_call_rate),
              })}
            </title>
          </rect>
        </g>
      ))}
    </svg>
  );
}

function Line({ y, width, words }: { y: number; width: number; words: string }) {
  return (
    <g class="axis">
      <line x1={LEFT} x2={width - RIGHT} y1={y} y2={y} />
      <text x={LEFT - 8} y={y + 4} text-anchor="end">
        {words}
      </text>
    </g>
  );
}

/** Shape as well as colour says that a point is outside its limits. */
function Mark({ x, y, isOutside }: { x: number; y: number; isOutside: boolean }) {
  if (!isOutside) return <circle class="yield" cx={x} cy={y} r={3.2} />;
  return <path class="outside" d={`M ${x} ${y - 7} L ${x + 7} ${y} L ${x} ${y + 7} L ${x - 7} ${y} Z`} />;
}

interface DatesProps {
  bucket: "hour" | "day";
  first: number;
  last: number;
  x: (value: number) => number;
  width: number;
}

function Dates({ bucket, first, last, x, width }: DatesProps) {
  const step = BUCKET_MS[bucket];
  const buckets = Math.round((last - first) / step);
  const every = Math.ceil(buckets / Math.max(1, Math.floor((width - LEFT - RIGHT) / PX_PER_DATE)));
  const starts = Array.from({ length: Math.ceil(buckets / every) }, (_, index) => first + index * every * step);
  return (
    <g class="axis" lang={language.value}>
      {starts.map((start) => (
        <text key={start} x={x(start + step / 2)} y={HEIGHT - 6} text-anchor="middle">
          {moment(new Date(start).toISOString(), bucket)}
        </text>
      ))}
    </g>
  );
}

function limitsText(point: TrendPoint): string {
  return t("figures.range", { lower: percent(point.lower), upper: percent(point.upper) });
}
