// Loss terms over the steps of a training, as they come: one line each, named at its end.

import { useWidth } from "../figures/plot";
import { linear } from "../figures/scale";
import { language, number, t, type Key } from "../words";
import { logScale, terms, thinned, type Term } from "./terms";
import type { CurvePoint } from "./wire";

const [LEFT, RIGHT, TOP, HEIGHT, BOTTOM] = [44, 190, 8, 170, 22];
const NAME_PX = 15;

export function Losses({ points }: { points: CurvePoint[] }) {
  const { box, width } = useWidth(720);
  const found = terms(points);
  const last = points.at(-1)!.step;
  const x = linear([points[0]!.step, Math.max(last, points[0]!.step + 1)], [LEFT, width - RIGHT]);
  const scale = logScale(found.flatMap(({ points: run }) => run.map(({ value }) => value)));
  const floor = TOP + HEIGHT;
  const y = (value: number) => floor - HEIGHT * scale.at(value);
  return (
    <div ref={box} class="plot">
      <svg
        width={width}
        height={floor + BOTTOM}
        viewBox={`0 0 ${width} ${floor + BOTTOM}`}
        role="img"
        aria-label={t("jobs.curves.summary", { step: number(last), words: found.map(ending).join(", ") })}
      >
        {scale.ticks.map((value) => (
          <g key={value} class="axis">
            <line x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
              {value.toLocaleString(language.value)}
            </text>
          </g>
        ))}
        <g class="axis">
          <line x1={LEFT} x2={width - RIGHT} y1={floor} y2={floor} />
          <text x={width - RIGHT} y={floor + 16} text-anchor="end">
            {t("jobs.step", { n: number(last) })}
          </text>
        </g>
        {found.map(({ name, points: run }, index) => (
          <polyline
            key={name}
            class={`term term-${index}`}
            points={thinned(run, width).map(({ step, value }) => `${x(step)},${y(value)}`).join(" ")}
          />
        ))}
        {spread(found, y).map(({ term, index, at }) => (
          <text key={term.name} class={`name term-${index}`} x={width - RIGHT + 8} y={at + 4}>
            {ending(term)}
          </text>
        ))}
      </svg>
    </div>
  );
}

const NAMED = new Set(["loss", "centre", "box", "mask", "old_centre", "old_box", "old_mask", "old_gate", "old_name"]);

/** A term that the station does not know is named as the training names it. */
function ending({ name, points }: Term): string {
  return `${NAMED.has(name) ? t(`jobs.term.${name}` as Key) : name} ${number(points.at(-1)!.value, 3)}`;
}

/** Names at the ends of their lines, pushed apart where they would lie over each other. */
function spread(found: Term[], y: (value: number) => number): { term: Term; index: number; at: number }[] {
  const placed = found
    .map((term, index) => ({ term, index, at: y(term.points.at(-1)!.value) }))
    .sort((one, other) => other.at - one.at);
  let lowest = TOP + HEIGHT + NAME_PX;
  for (const name of placed) lowest = name.at = Math.min(name.at, lowest - NAME_PX);
  return placed;
}
