// What a version gained and lost against the one it was made from: two dots a class, and the way between them.

import { NONE, percent } from "../figures/format";
import { floorOfShares, linear, ticks } from "../figures/scale";
import { number, t, told } from "../words";
import { moved, type Move } from "./moves";
import type { BeforeAfter } from "./wire";

const [WIDTH, ROW, DOT] = [300, 16, 5];

export function BeforeAfterCard({ table, heading = "h3" }: { table: BeforeAfter; heading?: "h2" | "h3" }) {
  const shares = table.classes.flatMap(({ before, after }) => [before, after]).filter((one) => one !== null);
  const floor = Math.min(floorOfShares(shares), 0.9);
  const x = linear([floor, 1], [DOT + 1, WIDTH - DOT - 1]);
  const Heading = heading;
  return (
    <section class="card table" aria-label={t("models.table")}>
      <Heading>{t("models.table")}</Heading>
      <table>
        <caption class="unseen">{t("models.table")}</caption>
        <thead>
          <tr>
            <th scope="col">{t("models.class")}</th>
            <th scope="col" class="axis">
              <Axis floor={floor} x={x} />
            </th>
            <th scope="col">{t("models.before")}</th>
            <th scope="col">{t("models.after")}</th>
            <th scope="col">{t("models.measured.n")}</th>
          </tr>
        </thead>
        <tbody>
          {[...table.classes]
            .sort((one, other) => Number(other.is_new) - Number(one.is_new))
            .map((line) => (
              <tr key={line.label}>
                <th scope="row">
                  {line.label}
                  {line.is_new && <small class="tag">{t("models.new")}</small>}
                </th>
                <td>
                  <Dumbbell x={x} before={line.before} after={line.after} move={moved(line.before, line.after)} />
                </td>
                <td class="number">{percent(line.before)}</td>
                <td class="number" data-move={moved(line.before, line.after)}>
                  {percent(line.after)}
                </td>
                <td class="number muted">{number(line.n)}</td>
              </tr>
            ))}
          <FalseCalls {...table.false_calls} />
        </tbody>
      </table>
      <p class="muted">
        {[
          t("models.examples", { words: examples(table.examples) }),
          t("models.minutes", { n: number(table.minutes, table.minutes < 10 ? 1 : 0) }),
          told(table.measured_on),
        ].join(" \u00b7 ")}
      </p>
    </section>
  );
}

function Axis({ floor, x }: { floor: number; x: (share: number) => number }) {
  return (
    <svg viewBox={`0 0 ${WIDTH} ${ROW}`} role="img" aria-label={t("models.ap")}>
      {ticks(floor, 1, 3).map((share) => (
        <text key={share} x={x(share)} y={12} text-anchor={share === 1 ? "end" : share === floor ? "start" : "middle"}>
          {percent(share, 0)}
        </text>
      ))}
    </svg>
  );
}

/** Hollow: before. Full: after. */
function Dumbbell({ x, before, after, move }: { x: (share: number) => number; before: number | null; after: number | null; move: Move }) {
  const y = ROW / 2;
  return (
    <svg viewBox={`0 0 ${WIDTH} ${ROW}`} aria-hidden="true" data-move={move}>
      <path class="rail" d={`M0 ${y}H${WIDTH}`} />
      {before !== null && after !== null && <path class="way" d={`M${x(before)} ${y}H${x(after)}`} />}
      {before !== null && <circle class="before" cx={x(before)} cy={y} r={DOT - 0.8} />}
      {after !== null && <circle class="after" cx={x(after)} cy={y} r={DOT} />}
    </svg>
  );
}

/** Boards, on a scale of their own: less is better. */
function FalseCalls({ before, after, boards }: BeforeAfter["false_calls"]) {
  const most = Math.max(before ?? 0, after ?? 0, 1);
  const width = (count: number | null) => (WIDTH * (count ?? 0)) / most;
  const share = (count: number | null) => (count === null || boards === 0 ? null : count / boards);
  const move = moved(share(after), share(before)); // less is better
  return (
    <tr class="false-calls">
      <th scope="row">{t("models.false_calls")}</th>
      <td>
        <svg viewBox={`0 0 ${WIDTH} ${ROW}`} aria-hidden="true" data-move={move}>
          <rect class="bar-before" x={0.5} y={1.5} width={Math.max(0.5, width(before) - 1)} height={5} />
          <rect class="bar-after" y={9} width={width(after)} height={6} />
        </svg>
      </td>
      <td class="number">{before === null ? NONE : number(before)}</td>
      <td class="number" data-move={move}>
        {after === null ? NONE : number(after)}
      </td>
      <td class="number muted">{number(boards)}</td>
    </tr>
  );
}

function examples(counts: Record<string, number>): string {
  const words = Object.entries(counts).map(([label, n]) => `${label} ${number(n)}`);
  return words.length ? words.join(", ") : "\u2013";
}
