// What the model did not call, as people drew it.

import { useEffect, useRef } from "preact/hooks";
import type { Missed } from "../types";
import { number, t } from "../words";
import { chooseMissed, missedAt } from "./escape";
import { removeMissed, review } from "./review";
import { boxAround } from "./spot";
import { grid, stage } from "./state";

export function MissedList() {
  const missed = review.value?.missed ?? [];
  const list = useRef<HTMLElement>(null);
  const before = useRef(missed.length);
  useEffect(() => {
    // What was just drawn is seen to be listed, below however many calls.
    if (missed.length > before.current) list.current?.scrollIntoView({ block: "end" });
    before.current = missed.length;
  }, [missed.length]);
  return (
    <section ref={list} class="missed" aria-label={t("review.missed")}>
      <div class="row">
        <h3>{t("review.missed")}</h3>
        <small>{missed.length ? number(missed.length) : t("review.missed.none")}</small>
      </div>
      {missed.length > 0 && (
        <ul>
          {missed.map((one, index) => (
            <li key={index} class="row" data-chosen={index === missedAt.value}>
              <span class="label">
                <button
                  type="button"
                  aria-pressed={index === missedAt.value}
                  title={t("escape.of", { label: one.label })}
                  onClick={() => look(one, index)}
                >
                  {one.label}
                </button>
              </span>
              <small>{extent(one)}</small>
              <button
                type="button"
                class="link remove"
                aria-label={t("review.missed.remove", { label: one.label })}
                onClick={() => forget(index)}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function look(missed: Missed, index: number): void {
  chooseMissed(index);
  const { width, height } = grid.value!;
  stage.value?.focus(boxAround(missed, width, height));
}

/** What comes after it moves up. */
function forget(index: number): void {
  chooseMissed(null);
  removeMissed(index);
}

function extent({ box_xyxy: box, polygon }: Missed): string {
  const xs = box ? [box[0], box[2]] : (polygon ?? []).map(([x]) => x);
  const ys = box ? [box[1], box[3]] : (polygon ?? []).map(([, y]) => y);
  const span = (values: number[]) => number(Math.max(...values) - Math.min(...values));
  return t("review.px", { width: span(xs), height: span(ys) });
}
