// What is called most, and what people say of it: a table whose bars are drawn.

import { number, t } from "../words";
import { percent } from "./format";
import { Key, Panel } from "./plot";
import type { ParetoLine } from "./types";

const LONGEST = 12;
const PARTS = ["real", "false", "process", "open"] as const;

interface Props {
  name: string;
  lines: ParetoLine[];
  /** Name of the first column. */
  of: string;
  /** What a line without a name is called. */
  nameless: string;
}

export function Pareto({ name, lines, of, nameless }: Props) {
  const shown = lines.filter((line) => line.calls + line.missed > 0).slice(0, LONGEST);
  const most = Math.max(1, ...shown.map((line) => line.calls + line.missed));
  const left = lines.length - shown.length;
  return (
    <Panel name={name} kind="pareto">
      {shown.length === 0 ? (
        <p class="empty">{t("figures.no_calls")}</p>
      ) : (
        <>
          <table>
            <caption class="unseen">{name}</caption>
            <thead class="unseen">
              <tr>
                <th scope="col">{of}</th>
                <th scope="col">{t("figures.words")}</th>
                <th scope="col">{t("figures.calls")}</th>
                <th scope="col">{t("figures.cumulative")}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((line) => (
                <Line key={line.name} line={line} most={most} nameless={nameless} />
              ))}
            </tbody>
          </table>
          {left > 0 && <p class="muted">{t("figures.more", { n: number(left) })}</p>}
          <p class="keys">
            {[...PARTS, "missed" as const].map((part) => (
              <Key key={part} kind={part} words={t(`figures.part.${part}`)} />
            ))}
          </p>
        </>
      )}
    </Panel>
  );
}

function Line({ line, most, nameless }: { line: ParetoLine; most: number; nameless: string }) {
  const { real, false_calls, process_indicators, missed } = line;
  // A class that was reclassified counts where it came from among the calls and where it went among the real ones.
  const open = Math.max(0, line.calls - real - false_calls - process_indicators);
  const parts = [
    { part: "real", count: real },
    { part: "false", count: false_calls },
    { part: "process", count: process_indicators },
    { part: "open", count: open },
    { part: "missed", count: missed },
  ] as const;
  const told = parts
    .filter(({ count }) => count > 0)
    .map(({ part, count }) => `${t(`figures.part.${part}`)}: ${number(count)}`)
    .join(", ");
  return (
    <tr>
      <th scope="row" title={line.name ?? nameless}>
        {line.name ?? nameless}
      </th>
      <td>
        <span class="bar" role="img" aria-label={told} title={told}>
          {parts.map(({ part, count }) => (
            <i key={part} class={`swatch ${part}`} style={{ width: `${(100 * count) / most}%` }} />
          ))}
        </span>
      </td>
      <td class="count">
        {number(line.calls)}
        {missed > 0 && ` + ${number(missed)}`}
      </td>
      <td class="count muted">{percent(line.cumulative, 0)}</td>
    </tr>
  );
}
