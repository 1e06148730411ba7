// The boards of this batch, one a line: picture, serial number, reference, and what became of it.

import { useSignal } from "@preact/signals";
import { notifyError } from "../notices";
import { link } from "../route";
import { may } from "../session";
import { t, told, type Key } from "../words";
import { Answer } from "./answer";
import {
  canChange,
  chooseReference,
  done,
  isBusy,
  recipeHasReferences,
  references,
  removeRow,
  rows,
  setSerial,
  useAsReference,
  type Row,
} from "./batch";
import { inspectSamples } from "./samples";

export function Batch() {
  if (!rows.value.length) {
    return (
      <div class="explained">
        <h2>{t("inspect.empty.title")}</h2>
        <p>{t("inspect.empty")}</p>
        <p>{t("inspect.empty.samples")}</p>
        <Samples />
      </div>
    );
  }
  return (
    <>
      <Summary />
      <div class="batch-scroll">
        <table class="batch">
          <thead>
            <tr>
              <th colSpan={2}>{t("inspect.column.board")}</th>
              <th>{t("inspect.column.serial")}</th>
              <th>{t("inspect.column.reference")}</th>
              <th colSpan={2}>{t("inspect.column.result")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.value.map((row) => (
              <Line key={row.id} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Samples() {
  const isFetching = useSignal(false);
  async function inspect() {
    isFetching.value = true;
    await inspectSamples().catch(notifyError);
    isFetching.value = false;
  }
  return (
    <button type="button" disabled={isFetching} onClick={() => void inspect()}>
      {t("inspect.samples")}
    </button>
  );
}

function Summary() {
  const all = rows.value.length;
  const count = (verdict: string) => done.value.filter((row) => row.report?.verdict === verdict).length;
  const refused = rows.value.filter((row) => row.state === "failed").length;
  const isFresh = !isBusy.value && !done.value.length && !refused;
  return (
    <div class="batch-summary">
      <progress max={all} value={done.value.length + refused} aria-label={t("inspect.title")} hidden={isFresh} />
      <p aria-live="polite">
        <strong>{t("inspect.summary", { done: done.value.length, all })}</strong>
        {done.value.length > 0 && (
          <span>
            {t("inspect.summary.verdicts", { pass: count("PASS"), fail: count("FAIL"), error: count("ERROR") })}
          </span>
        )}
        {done.value.length > 0 && !isBusy.value && may("operator") && <a href={link("queue")}>{t("inspect.toqueue")}</a>}
        {refused > 0 && <span class="refused">{t("inspect.summary.failed", { n: refused })}</span>}
      </p>
    </div>
  );
}

function Line({ row }: { row: Row }) {
  const isOpen = useSignal(false);
  const name = row.board.name;
  return (
    <>
      <tr data-state={row.state}>
        <td class="thumb">
          <Thumbnail row={row} />
        </td>
        <th scope="row">
          <span class="file" title={name}>
            {name}
          </span>
          {row.state === "waiting" && !recipeHasReferences.value && (
            <button
              type="button"
              class="link small"
              aria-label={t("inspect.is_reference", { name })}
              onClick={() => useAsReference(row)}
            >
              {t("inspect.is_reference.short")}
            </button>
          )}
        </th>
        <td>
          {canChange(row) ? (
            <input
              value={row.serial}
              maxLength={200}
              aria-label={t("inspect.serial", { name })}
              spellcheck={false}
              onInput={(event) => setSerial(row.id, event.currentTarget.value)}
            />
          ) : (
            row.serial
          )}
        </td>
        <td>
          <ReferenceChooser row={row} />
        </td>
        <td class="result">
          <Result row={row} isOpen={isOpen.value} toggle={() => (isOpen.value = !isOpen.value)} />
        </td>
        <td>
          <button type="button" class="link" aria-label={t("inspect.remove", { name })} onClick={() => removeRow(row.id)}>
            ×
          </button>
        </td>
      </tr>
      {isOpen.value && row.report && (
        <tr class="answer-row">
          <td colSpan={6}>
            <Answer report={row.report} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Of a format the browser cannot show, the server's, once it has the board. */
function Thumbnail({ row }: { row: Row }) {
  const served = row.report && may("operator") ? `/v1/inspections/${row.report.id}/thumbnail` : null;
  const picture = row.picture ?? served;
  return picture ? <img src={picture} alt="" width="56" height="42" /> : <span class="no-picture" />;
}

function ReferenceChooser({ row }: { row: Row }) {
  if (recipeHasReferences.value && canChange(row)) return <span class="muted">{t("inspect.reference.recipe")}</span>;
  const used = row.report ? row.report.reference?.name : null;
  if (!canChange(row)) return <span class="file">{row.reference?.name ?? used ?? t("inspect.reference.none")}</span>;
  return (
    <select
      aria-label={t("inspect.reference", { name: row.board.name })}
      value={row.reference ? references.value.indexOf(row.reference) : -1}
      onChange={(event) => chooseReference(row.id, references.value[Number(event.currentTarget.value)] ?? null)}
    >
      <option value={-1}>{t("inspect.reference.none")}</option>
      {references.value.map((file, index) => (
        <option key={index} value={index}>
          {file.name}
        </option>
      ))}
    </select>
  );
}

function Result({ row, isOpen, toggle }: { row: Row; isOpen: boolean; toggle: () => void }) {
  const why = [row.error?.message, row.error?.hint].filter(Boolean).join(". ");
  if (row.state === "done" && row.report) {
    const { id, verdict, num_defects, attempt, reasons } = row.report;
    const calls = num_defects ?? row.report.defects.length;
    return (
      <div class="row">
        <span class={`verdict ${verdict}`}>{verdict}</span>
        <span class="told" title={reasons.map(told).join("\n")}>
          {verdict === "ERROR" ? told(reasons[0] ?? "") : t("inspect.calls", { n: calls })}
          {attempt !== null && attempt > 1 && <small> {t("inspect.attempt", { n: attempt })}</small>}
        </span>
        {may("operator") ? (
          <a href={link("board", id)} aria-label={`${t("inspect.open")} ${row.serial}`}>
            {t("inspect.open")}
          </a>
        ) : (
          <button type="button" class="link" aria-expanded={isOpen} onClick={toggle}>
            {t("inspect.look", { name: row.serial || row.board.name })}
          </button>
        )}
      </div>
    );
  }
  if (row.state === "failed") return <p class="refused">{why}</p>;
  const words = t(`inspect.state.${row.state}` as Key, {
    percent: Math.round(100 * row.sent),
    why: row.error?.message ?? "",
    n: row.waitS,
  });
  return (
    <div class="going">
      {row.state === "sending" && <progress value={row.sent} aria-label={t("inspect.column.result")} />}
      {row.state === "inspecting" && <progress aria-label={t("inspect.column.result")} />}
      <span class={row.state === "pausing" ? "pausing" : "muted"}>{words}</span>
    </div>
  );
}
