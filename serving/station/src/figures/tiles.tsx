// The figures themselves, each with its denominator.

import type { ComponentChildren } from "preact";
import { number, t } from "../words";
import { figure, NONE, percent } from "./format";
import type { Rate, Stats } from "./types";

export function Tiles({ stats }: { stats: Stats }) {
  return (
    <div class="tiles">
      <Boards stats={stats} />
      <Yield stats={stats} />
      <FalseCalls stats={stats} />
      <Escapes stats={stats} />
      <Audit stats={stats} />
      <Agreement stats={stats} />
    </div>
  );
}

function Tile({ name, value, children }: { name: string; value: string; children: ComponentChildren }) {
  return (
    <section class="card tile">
      <h2>{name}</h2>
      <p class="value">{value}</p>
      {children}
    </section>
  );
}

function Boards({ stats: { boards } }: { stats: Stats }) {
  return (
    <Tile name={t("figures.boards")} value={number(boards.inspected)}>
      <p>{t("figures.boards.verdicts", { passed: number(boards.passed), failed: number(boards.failed) })}</p>
      {boards.not_inspected > 0 && (
        <p class="warn">{t("figures.boards.not_inspected", { n: number(boards.not_inspected) })}</p>
      )}
      {boards.failed_open > 0 && <p class="warn">{t("figures.boards.open", { n: number(boards.failed_open) })}</p>}
      {boards.hasty > 0 && <p class="warn">{t("figures.boards.hasty", { n: number(boards.hasty) })}</p>}
      {boards.without_serial > 0 && <p>{t("figures.boards.no_serial", { n: number(boards.without_serial) })}</p>}
      {boards.challenge > 0 && <p>{t("figures.boards.challenge", { n: number(boards.challenge) })}</p>}
    </Tile>
  );
}

function Yield({ stats }: { stats: Stats }) {
  const { before_review: before, after_review: after } = stats.first_pass_yield;
  return (
    <Tile name={t("figures.yield")} value={percent(after.value)}>
      <p>{t("figures.yield.before", { share: percent(before.value) })}</p>
      <Interval rate={after} />
      <p>{t("figures.yield.of", { n: number(after.of) })}</p>
    </Tile>
  );
}

function FalseCalls({ stats: { false_calls: calls } }: { stats: Stats }) {
  const [perBoard, perSide, perMm2] = calls.rates;
  return (
    <Tile name={t("figures.false")} value={number(calls.count)}>
      <p>
        {t("figures.false.boards", {
          ppm: calls.boards.ppm === null ? NONE : figure(calls.boards.ppm),
          count: number(calls.boards.count),
          n: number(calls.boards.of),
        })}
      </p>
      <p>{t("figures.false.per_board", { rate: figure(perBoard.value), n: number(perBoard.of) })}</p>
      {perSide.value === null ? (
        <p>{t("figures.false.no_size")}</p>
      ) : (
        <>
          <p>{t("figures.false.per_side", { rate: figure(perSide.value), n: figure(perSide.of) })}</p>
          <p>{t("figures.false.per_m2", { rate: figure(perMm2.ppm), n: figure(perMm2.of / 1e6) })}</p>
        </>
      )}
    </Tile>
  );
}

function Escapes({ stats: { escapes } }: { stats: Stats }) {
  return (
    <Tile name={t("figures.escapes")} value={number(escapes.boards.count)}>
      <p>
        {t("figures.escapes.of", {
          ppm: escapes.boards.ppm === null ? NONE : figure(escapes.boards.ppm),
          n: number(escapes.boards.of),
        })}
      </p>
      <p>{t("figures.escapes.by", { review: number(escapes.by_review), test: number(escapes.by_test) })}</p>
      <p>{t("figures.escapes.missed", { n: number(escapes.missed_defects) })}</p>
    </Tile>
  );
}

function Audit({ stats: { audit } }: { stats: Stats }) {
  const rate = audit.escape_rate;
  return (
    <Tile
      name={t("figures.audit")}
      value={t("figures.audit.value", { reviewed: number(audit.reviewed), drawn: number(audit.drawn) })}
    >
      <p>{t("figures.audit.escapes", { n: number(audit.escapes), reviewed: number(audit.reviewed) })}</p>
      {rate.upper !== null && audit.reviewed > 0 ? (
        <p>{t("figures.audit.bound", { share: percent(rate.upper, 2) })}</p>
      ) : (
        <p>{t("figures.audit.none")}</p>
      )}
    </Tile>
  );
}

function Agreement({ stats: { agreement } }: { stats: Stats }) {
  const { calls, agreed, kappa } = agreement;
  return (
    <Tile name={t("figures.agreement")} value={kappa === null ? NONE : `\u03ba ${number(kappa, 2)}`}>
      {calls === 0 ? (
        <p>{t("figures.agreement.none")}</p>
      ) : (
        <p>{t("figures.agreement.of", { agreed: number(agreed), n: number(calls) })}</p>
      )}
      {calls > 0 && kappa === null && <p>{t("figures.agreement.one_word")}</p>}
    </Tile>
  );
}

function Interval({ rate }: { rate: Rate }) {
  if (rate.lower === null || rate.upper === null || rate.of === 0) return null;
  return <p>{t("figures.interval", { lower: percent(rate.lower), upper: percent(rate.upper) })}</p>;
}
