// Why a drawn defect was missed: how near each class came to being called, what each level says, and what can be done.

import { useSignal } from "@preact/signals";
import { percent } from "../figures/format";
import { useLoaded } from "../figures/load";
import { Refusal, sentence } from "../refusal";
import { link } from "../route";
import { may } from "../session";
import type { Missed } from "../types";
import { number, t, told } from "../words";
import { Crops } from "./crops";
import { chooseMissed, spotAddress } from "./escape";
import { proposal, boxAround, type Spot } from "./spot";
import { grid, isSeen, LEVELS, report } from "./state";
import { ThresholdDialog } from "./threshold-dialog";
import "./escape.css";

const MOST_CLASSES = 4;

export function EscapeDetail({ missed }: { missed: Missed }) {
  // What can wait: the first view of the board comes before it.
  const { data, error } = useLoaded<Spot>(isSeen.value ? spotAddress(missed) : null);
  const { width, height } = grid.value!;
  return (
    <section class="detail escape" aria-label={t("escape.title")} aria-busy={!data && !error}>
      <Crops box={boxAround(missed, width, height)} layers={["image", "reference"]} />
      <div class="facts">
        <h2>
          {t("escape.of", { label: missed.label })}
          <button type="button" class="link" onClick={() => chooseMissed(null)}>
            {t("shell.close")} <kbd aria-hidden="true">{t("key.Escape")}</kbd>
          </button>
        </h2>
        {!data && !error && <p class="muted">{t("board.computing")}</p>}
        {error && <Refusal error={error} />}
        {data && <Why spot={data} missed={missed} />}
      </div>
      {data && (
        <div class="spots">
          <Classes spot={data} drawn={missed.label} />
          <Levels spot={data} />
        </div>
      )}
    </section>
  );
}

function Why({ spot, missed }: { spot: Spot; missed: Missed }) {
  const isAsking = useSignal(false);
  const isKnown = spot.classes.some(({ label }) => label === missed.label);
  const lowered = spot.offers.includes("threshold") && may("engineer") ? proposal(spot, missed.label) : null;
  return (
    <>
      <ul class="why">
        {spot.words.map((words) => (
          <li key={words}>{sentence(told(words))}</li>
        ))}
      </ul>
      <p class="kept">
        <span aria-hidden="true">{"\u2713"}</span> {t("escape.example")}
      </p>
      {(lowered || (!isKnown && may("engineer"))) && (
        <div class="row offers">
          {!isKnown && may("engineer") && (
            <a class="button" href={link("models", "", { tab: "new", label: missed.label })}>
              {t("escape.class", { label: missed.label })}
            </a>
          )}
          {lowered && (
            <button type="button" onClick={() => (isAsking.value = true)}>
              {t("escape.threshold")}
            </button>
          )}
        </div>
      )}
      {!isKnown && !may("engineer") && <p class="muted">{t("escape.class.engineer")}</p>}
      {isAsking.value && lowered && (
        <ThresholdDialog
          recipe={report.value!.recipe!}
          classes={spot.classes}
          first={lowered}
          serial={report.value!.serial ?? report.value!.id}
          onClose={() => (isAsking.value = false)}
        />
      )}
    </>
  );
}

/** Score of each class at the spot, against its threshold. */
function Classes({ spot, drawn }: { spot: Spot; drawn: string }) {
  const shown = spot.classes.slice(0, MOST_CLASSES);
  const own = spot.classes.find(({ label }) => label === drawn);
  if (own && !shown.includes(own)) shown[shown.length - 1] = own;
  return (
    <table class="spot">
      <caption>{t("escape.classes")}</caption>
      <tbody>
        {shown.map(({ label, score, threshold }) => (
          <tr key={label} data-near={label === spot.label}>
            <th scope="row" title={label}>
              {label}
            </th>
            <td class="drawn">
              <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect class="ground" width="100" height="8" />
                <rect class="value" width={100 * score} height="8" />
                <rect class="mark" x={100 * threshold - 0.8} width="1.6" height="8" />
              </svg>
            </td>
            <td>{t("escape.score", { score: number(score, 2), threshold: number(threshold, 2) })}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Levels({ spot }: { spot: Spot }) {
  const score = spot.classes.find(({ label }) => label === spot.label)?.score ?? 0;
  return (
    <table class="spot levels">
      <caption class="unseen">{t("escape.levels")}</caption>
      <thead>
        <tr>
          <td />
          <th scope="col">{t("escape.share")}</th>
          <th scope="col">{t("escape.attention")}</th>
          <th scope="col">{t("escape.without", { label: spot.label })}</th>
        </tr>
      </thead>
      <tbody>
        {LEVELS.map((level) => {
          const found = spot.levels.find((one) => one.level === level);
          return (
            <tr key={level}>
              <th scope="row">{t("escape.level", { level })}</th>
              <td class="drawn">
                <Bar kind={`level-${level}`} share={spot.gate_share[level]} words={percent(spot.gate_share[level], 0)} />
              </td>
              <td>{found ? t("escape.times", { n: number(found.attention, 1) }) : ""}</td>
              <td class="drawn">
                {found && <Bar kind="value" share={found.removed} mark={score} words={number(found.removed, 2)} />}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** mark: what it is with all levels. */
function Bar({ kind, share, mark, words }: { kind: string; share: number; mark?: number; words: string }) {
  return (
    <span class="small-bar">
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="ground" width="100" height="8" />
        <rect class={kind} width={100 * share} height="8" />
        {mark !== undefined && <rect class="mark" x={100 * mark - 1} width="2" height="8" />}
      </svg>
      <span>{words}</span>
    </span>
  );
}
