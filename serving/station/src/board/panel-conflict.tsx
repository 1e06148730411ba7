// Two people spoke of one board: both versions side by side, and the choice between them.

import { signal } from "@preact/signals";
import { Dialog } from "../dialog";
import type { Entry } from "../outbox";
import { outbox } from "../sending";
import type { Action } from "../keys";
import type { CallWord, Missed, Review } from "../types";
import { number, t, time } from "../words";
import { review, takeTheirs } from "./review";
import { report } from "./state";

/** The revision of the other's that one will decide about later. */
export const putOff = signal<number | null>(null);

export function Conflict({ entry }: { entry: Entry }) {
  const theirs = entry.theirs!;
  if (putOff.value === theirs.revision) return null;
  const mine = review.value!;
  const who = theirs.actor || t("review.somebody");
  const choices: Action[] = [
    { key: "t", words: t("review.conflict.theirs"), run: () => takeTheirs(entry) },
    { key: "m", words: t("review.conflict.mine"), run: () => outbox.insist(entry.inspection) },
  ];
  const rows = differences(mine, theirs);
  const decideLater = () => (putOff.value = theirs.revision);
  return (
    <Dialog title={t("review.conflict", { name: entry.name })} keys={choices} wide onClose={decideLater}>
      <p>{t("review.conflict.words", { who, at: time(theirs.at!) })}</p>
      {rows.length ? (
        <table class="versions">
          <thead>
            <tr>
              <td />
              <th scope="col">{t("review.conflict.yours")}</th>
              <th scope="col">{theirs.actor || t("review.conflict.other")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([what, yours, other]) => (
              <tr key={what}>
                <th scope="row">{what}</th>
                <td>{yours}</td>
                <td>{other}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="muted">{t("review.conflict.same")}</p>
      )}
      <div class="choices">
        {choices.map(({ key, words, run }) => (
          <button type="button" key={key} onClick={run}>
            {words} <kbd>{key.toUpperCase()}</kbd>
          </button>
        ))}
      </div>
    </Dialog>
  );
}

/** [what, as it is here, as it is there] of everything that differs. */
function differences(mine: Review, theirs: Review): [string, string, string][] {
  const ids = new Set([...mine.calls, ...theirs.calls].map(({ defect }) => defect));
  const of = (said: Review, id: number) => word(said.calls.find(({ defect }) => defect === id));
  const label = (id: number) => report.value?.defects.find((defect) => defect.id === id)?.label ?? "";
  const yes = (is: boolean) => t(is ? "review.yes" : "review.no");
  const fate = ({ disposition }: Review) => (disposition ? t(`disposition.${disposition}`) : t("review.nothing"));
  const rows: [string, string, string][] = [
    ...[...ids].sort((one, other) => one - other).map(
      (id): [string, string, string] => [t("review.call", { n: id, label: label(id) }), of(mine, id), of(theirs, id)],
    ),
    [t("review.missed"), missed(mine.missed), missed(theirs.missed)],
    [t("review.checked"), yes(mine.checked), yes(theirs.checked)],
    [t("review.disposition"), fate(mine), fate(theirs)],
    [t("review.note"), mine.note, theirs.note],
  ];
  return rows.filter(([, yours, other]) => yours !== other);
}

function word(said: CallWord | undefined): string {
  return said ? `${t(`word.${said.word}`)} (${said.label})` : t("review.nothing");
}

/** Classes with their places, so that two drawings of one class differ. */
function missed(list: Missed[]): string {
  const corner = ({ box_xyxy: box, polygon }: Missed) => (box ?? polygon?.[0] ?? []).slice(0, 2);
  const place = (one: Missed) => corner(one).map((px) => number(px)).join(", ");
  return list.map((one) => `${one.label} (${place(one)})`).join("; ") || t("review.nothing");
}
