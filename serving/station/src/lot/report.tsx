// A lot report as it is read and printed: summary, classes, boards, and its real defects.

import type { ComponentChildren } from "preact";
import { address } from "../api";
import { days, minute, NONE, percent } from "../figures/format";
import { link } from "../route";
import { actor } from "../session";
import { DISPOSITIONS, type QueueItem } from "../types";
import { number, t, time } from "../words";
import { around } from "./crop";
import { MOST_BOARDS, type Lot, type LotBoard, type LotDefect, type LotFilter } from "./gather";
import { outcomeOf, tallyOf, type Tally } from "./tally";

const CROP_PX = 320;
const MOST_CROPS = 60;

export function LotReport({ lot, filter, at }: { lot: Lot; filter: LotFilter; at: Date }) {
  const tally = tallyOf(lot.boards);
  return (
    <article class="lot">
      <Head lot={lot} filter={filter} at={at} />
      {lot.isCut && <p class="notice">{t("lot.cut", { n: number(MOST_BOARDS) })}</p>}
      <Summary tally={tally} />
      {tally.classes.length > 0 && <Classes tally={tally} />}
      <Boards boards={lot.boards} />
      <Defects defects={lot.defects} />
    </article>
  );
}

function Head({ lot, filter, at }: { lot: Lot; filter: LotFilter; at: Date }) {
  const recipes = distinct(lot.boards.map(({ item }) => item.recipe));
  return (
    <header>
      <h1>{filter.serial ? t("lot.title.serial", { serial: filter.serial }) : t("lot.title")}</h1>
      <dl>
        <Fact name={t("lot.period")}>{days(filter.since, filter.until ?? at)}</Fact>
        <Fact name={t("figures.recipe")}>{recipes.join(", ") || NONE}</Fact>
        <Fact name={t("lot.models")}>{distinct(lot.boards.map(({ item }) => item.model_version)).join(", ") || NONE}</Fact>
        <Fact name={t("lot.made")}>{[time(at.toISOString()), actor()].filter(Boolean).join(", ")}</Fact>
      </dl>
    </header>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Summary({ tally }: { tally: Tally }) {
  const share = (count: number) => percent(tally.first > 0 ? count / tally.first : null);
  const { PASS, FAIL, ERROR } = tally.verdicts;
  return (
    <section>
      <h2>{t("lot.summary")}</h2>
      <dl class="summary">
        <Fact name={t("lot.boards")}>
          <b>{number(tally.boards)}</b>
          <span>{t("lot.inspections", { n: number(tally.inspections) })}</span>
        </Fact>
        <Fact name={t("figures.yield")}>
          <b>{share(tally.first_good)}</b>
          <span>{t("figures.yield.before", { share: share(tally.first_passed) })}</span>
          <span>{t("figures.yield.of", { n: number(tally.first) })}</span>
        </Fact>
        <Fact name={t("lot.verdicts")}>
          <b>{t("lot.pass_fail", { pass: number(PASS), fail: number(FAIL) })}</b>
          {ERROR > 0 && <span>{t("lot.error", { n: number(ERROR) })}</span>}
        </Fact>
        <Fact name={t("lot.outcome")}>
          <b>{t("lot.good_bad", { good: number(tally.good), bad: number(tally.bad) })}</b>
          {tally.open > 0 && <span>{t("lot.open", { n: number(tally.open) })}</span>}
          {tally.not_inspected > 0 && <span>{t("lot.not_inspected", { n: number(tally.not_inspected) })}</span>}
        </Fact>
        <Fact name={t("lot.disposition")}>
          {DISPOSITIONS.map((one) => (
            <span key={one}>
              {t(`lot.disposition.${one}`)}: {number(tally.dispositions[one])}
            </span>
          ))}
        </Fact>
      </dl>
    </section>
  );
}

function Classes({ tally }: { tally: Tally }) {
  return (
    <section>
      <h2>{t("lot.classes")}</h2>
      <table class="classes">
        <thead>
          <tr>
            <th scope="col">{t("figures.class")}</th>
            <th scope="col">{t("figures.part.real")}</th>
            <th scope="col">{t("figures.part.missed")}</th>
            <th scope="col">{t("figures.part.false")}</th>
            <th scope="col">{t("figures.part.process")}</th>
          </tr>
        </thead>
        <tbody>
          {tally.classes.map((line) => (
            <tr key={line.label}>
              <th scope="row">{line.label}</th>
              <td>{number(line.real)}</td>
              <td>{number(line.missed)}</td>
              <td>{number(line.false_calls)}</td>
              <td>{number(line.process_indicators)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Boards({ boards }: { boards: LotBoard[] }) {
  return (
    <section>
      <h2>{t("lot.list")}</h2>
      <table class="boards">
        <thead>
          <tr>
            <th scope="col">{t("lot.serial")}</th>
            <th scope="col">{t("lot.time")}</th>
            <th scope="col">{t("lot.attempt")}</th>
            <th scope="col">{t("lot.verdict")}</th>
            <th scope="col">{t("lot.called")}</th>
            <th scope="col">{t("lot.outcome")}</th>
            <th scope="col">{t("lot.disposition")}</th>
            <th scope="col">{t("lot.who")}</th>
          </tr>
        </thead>
        <tbody>
          {boards.map((board) => (
            <Row key={board.item.id} board={board} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ board }: { board: LotBoard }) {
  const { item, review } = board;
  const who = distinct(review?.history.map((entry) => entry.actor || t("review.somebody")) ?? []);
  return (
    <tr>
      <th scope="row">
        <a href={link("board", item.id)}>{nameOf(item)}</a>
      </th>
      <td>{minute(item.created)}</td>
      <td>{item.attempt ?? NONE}</td>
      <td>
        <span class={`verdict ${item.verdict}`}>{item.verdict}</span>
      </td>
      <td>{item.labels.join(", ") || NONE}</td>
      <td>{t(`lot.outcome.${outcomeOf(board)}`)}</td>
      <td>{item.disposition ? t(`lot.disposition.${item.disposition}`) : NONE}</td>
      <td>{who.join(", ") || NONE}</td>
    </tr>
  );
}

function Defects({ defects }: { defects: LotDefect[] }) {
  if (defects.length === 0) return null;
  return (
    <section>
      <h2>{t("lot.defects")}</h2>
      <ul class="defects">
        {defects.slice(0, MOST_CROPS).map((defect, index) => (
          <li key={index}>
            <figure>
              <img
                src={cropOf(defect)}
                alt={t("lot.crop", { label: defect.label, serial: nameOf(defect.board) })}
              />
              <figcaption>
                <b>{defect.label}</b>
                {defect.isMissed && <span class="failed">{t("figures.part.missed")}</span>}
                <span>{nameOf(defect.board)}</span>
              </figcaption>
            </figure>
          </li>
        ))}
      </ul>
      {defects.length > MOST_CROPS && <p>{t("figures.more", { n: number(defects.length - MOST_CROPS) })}</p>}
    </section>
  );
}

/** As the queue calls a board without a serial. */
function nameOf({ serial, id }: QueueItem): string {
  return serial ?? t("queue.noserial", { id: id.slice(-6) });
}

function cropOf({ board, box, image }: LotDefect): string {
  return address(`/v1/inspections/${board.id}/crops/image`, { box: around(box, image).join(","), size: CROP_PX });
}

function distinct(values: (string | null)[]): string[] {
  return [...new Set(values.filter((value) => value !== null && value !== ""))] as string[];
}
