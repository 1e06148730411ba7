// What calls like the chosen one turned out to be on other boards.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, request } from "../api";
import { link } from "../route";
import type { Word } from "../types";
import { number, t, time } from "../words";
import { call, report } from "./state";

interface SimilarCall {
  inspection: string;
  defect: number;
  label: string;
  score: number;
  created: string;
  serial: string | null;
  word: Word | null;
  crop: string;
  distance_mm: number | null;
}

/** One does not wait for it while one goes through the calls quickly. */
const PAUSE_MS = 250;
const MOST = 8;

export function Similar() {
  const found = useSignal<SimilarCall[] | null>(null);
  const inspection = report.value?.id;
  const defect = call.value?.id;
  useEffect(() => {
    if (!inspection || !defect) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      request<{ calls: SimilarCall[] }>(`/v1/inspections/${inspection}/defects/${defect}/similar?limit=${MOST}`, {
        signal: stop.signal,
      }).then(
        ({ calls }) => (found.value = calls),
        (error: unknown) => {
          if (error instanceof ApiError) found.value = []; // a help only: the review goes on without it
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, []);
  if (!defect) return null;
  const words = (found.value ?? []).map(({ word }) => word).filter((word) => word !== null);
  return (
    <section class="similar" aria-label={t("review.similar")} aria-busy={found.value === null}>
      <div class="row">
        <h3>{t("review.similar")}</h3>
        <small>{summary(found.value, words)}</small>
      </div>
      <ul>
        {found.value === null && Array.from({ length: MOST }, (_, place) => <li key={place} class="awaited" />)}
        {(found.value ?? []).map((one) => (
          <li key={`${one.inspection}/${one.defect}`}>
            <a href={link("board", one.inspection, { defect: String(one.defect) })} title={describe(one)}>
              <img src={one.crop} alt={describe(one)} width="50" height="50" loading="lazy" />
              {one.word && <span class={`word ${one.word}`}>{t(`word.${one.word}.short`)}</span>}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function summary(found: SimilarCall[] | null, words: Word[]): string {
  if (found === null) return "";
  if (!found.length) return t("review.similar.none");
  if (!words.length) return t("review.similar.unjudged");
  const n = words.filter((word) => word === "false_call").length;
  return t("review.similar.words", { n, of: words.length });
}

function describe({ label, serial, score, word, created, distance_mm: distance }: SimilarCall): string {
  return [
    `${label} ${number(score, 2)}`,
    word ? t(`word.${word}`) : t("review.similar.noword"),
    serial,
    distance === null ? null : t("review.similar.away", { mm: number(distance, 1) }),
    time(created),
  ]
    .filter(Boolean)
    .join(", ");
}
