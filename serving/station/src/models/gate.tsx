// What the promotion gate found: by class, how many defects are newly missed, and how many could be at worst.

import { percent } from "../figures/format";
import { sentence } from "../refusal";
import { number, t, told } from "../words";
import { Places } from "./missed";
import { boundBar } from "./moves";
import type { Gate, GateClass, Outcome } from "./wire";

/** isInUse: it inspects already, whether or not it was ever measured. */
export function GateCard({ gate, isInUse = false }: { gate: Gate | null; isInUse?: boolean }) {
  if (!gate) {
    return (
      <section class="card gate" aria-label={t("models.gate")}>
        <h3>{t("models.gate")}</h3>
        <p class="muted">
          {t("models.gate.none")} {!isInUse && t("models.gate.first")}
        </p>
      </section>
    );
  }
  const { margin, confidence, data, base } = gate;
  const missed = gate.classes.flatMap(({ label, missed: places }) => places.map((place) => ({ ...place, label, box: place.box_xyxy })));
  const calls = gate.false_calls.calls.map((place) => ({
    ...place,
    label: place.label ?? t("models.gate.not_inspected"),
    box: place.box_xyxy,
  }));
  return (
    <section class="card gate" aria-label={t("models.gate")}>
      <h3>
        {t("models.gate")} <Mark result={gate.result} />
      </h3>
      <p class="verdict-words" data-result={gate.result}>
        {words(gate)}
      </p>
      {gate.result === "insufficient" && !isInUse && <p class="muted">{t("models.gate.lacks.ways")}</p>}
      <div class="wide" tabIndex={0} role="region" aria-label={t("models.gate.table")}>
        <table>
          <caption class="unseen">{t("models.gate")}</caption>
          <thead>
            <tr>
              <th scope="col">{t("models.class")}</th>
              <th scope="col">{t("models.gate.defects")}</th>
              <th scope="col">{t("models.gate.newly")}</th>
              <th scope="col">{t("models.gate.bound", { margin: percent(margin, 0) })}</th>
              <th scope="col">{t("models.gate.result")}</th>
            </tr>
          </thead>
          <tbody>
            {gate.classes.map((line) => (
              <ClassLine key={line.label} line={line} margin={margin} />
            ))}
            <tr class="false-calls">
              <th scope="row">{t("models.gate.false_calls")}</th>
              <td class="number">{number(gate.false_calls.num_boards)}</td>
              <td class="number" data-any={gate.false_calls.newly > 0}>
                {number(gate.false_calls.newly)}
              </td>
              <td>
                <Bound bound={gate.false_calls.bound} margin={gate.false_call_margin} result={gate.false_calls.result} />
              </td>
              <td>
                <Result result={gate.false_calls.result} needs={gate.false_calls.needs} />
              </td>
            </tr>
            {gate.retired_classes.map((label) => (
              <tr key={label}>
                <th scope="row">
                  <s>{label}</s>
                </th>
                <td colSpan={4} class="muted">
                  {t("models.gate.retired")}
                </td>
              </tr>
            ))}
            {gate.new_classes.map(({ label, num_defects, found }) => (
              <tr key={label}>
                <th scope="row">
                  {label}
                  <small class="tag">{t("models.new")}</small>
                </th>
                <td class="number">{"\u2013"}</td>
                <td colSpan={3}>{t("models.gate.new_class", { found: number(found), n: number(num_defects) })}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {missed.length > 0 && <Places name={t("models.gate.missed")} places={missed} />}
      {calls.length > 0 && <Places name={t("models.gate.calls")} places={calls} />}
      <p class="muted">
        {t("models.gate.data", {
          boards: number(data.boards),
          pictures: number(data.pictures),
          base: `${base.name} ${base.version}`,
          sure: percent(confidence, 0),
        })}
      </p>
    </section>
  );
}

function ClassLine({ line, margin }: { line: GateClass; margin: number }) {
  return (
    <tr>
      <th scope="row">{line.label}</th>
      <td class="number">{number(line.num_boards)}</td>
      <td class="number" data-any={line.boards_newly_missed > 0}>
        {number(line.boards_newly_missed)}
        {line.newly_found > 0 && (
          <small class="gain" title={t("models.gate.newly_found", { n: number(line.newly_found) })}>
            {" "}
            +{number(line.newly_found)}
          </small>
        )}
      </td>
      <td>
        <Bound bound={line.bound} margin={margin} result={line.result} />
      </td>
      <td>
        <Result result={line.result} needs={line.needs} />
      </td>
    </tr>
  );
}

function Bound({ bound, margin, result }: { bound: number | null; margin: number; result: Outcome }) {
  if (bound === null) return <span class="muted">{"\u2013"}</span>;
  const bar = boundBar(bound, margin);
  return (
    <span class="bound" data-result={result}>
      <svg viewBox="0 0 120 14" aria-hidden="true">
        <rect class="ground" y="4" width="120" height="6" />
        <rect class="value" y="4" width={120 * bar.bound} height="6" />
        {bar.isCut && <path class="cut" d="M108 1l4 12M113 1l4 12" />}
        <path class="margin" d={`M${120 * bar.margin} 0V14`} />
      </svg>
      <span class="number">{percent(bound)}</span>
    </span>
  );
}

function Result({ result, needs }: { result: Outcome; needs: number }) {
  return <Mark result={result} words={needs > 0 ? t("models.gate.needs", { n: number(needs) }) : undefined} />;
}

/** A sign as well as a colour. */
export function Mark({ result, words }: { result: Outcome; words?: string }) {
  const sign = { pass: "\u2713", fail: "\u2717", insufficient: "?" }[result];
  return (
    <span class="mark" data-result={result}>
      <i aria-hidden="true">{sign}</i> {words ?? t(`models.result.${result}`)}
    </span>
  );
}

/** The outcome in a sentence; of what the figures do not say, the service's own words. */
function words(gate: Gate): string {
  const of = (result: Outcome) => gate.classes.filter((line) => line.result === result);
  if (gate.result === "pass") {
    return t("models.gate.pass", { sure: percent(gate.confidence, 0), margin: percent(gate.margin, 0) });
  }
  const failed = of("fail").map(failWords);
  if (gate.false_calls.result === "fail") failed.push(t("models.gate.fail.false_calls", { n: number(gate.false_calls.newly) }));
  if (failed.length) return sentence(`${t("models.gate.fail")} ${failed.join("; ")}`);
  if (of("insufficient").length || gate.false_calls.result === "insufficient") return t("models.gate.lacks");
  return gate.words.map(told).join(" ");
}

function failWords({ label, boards_newly_missed, num_boards }: GateClass): string {
  return t("models.gate.fail.class", { label, n: number(boards_newly_missed), of: number(num_boards) });
}
