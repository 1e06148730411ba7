// What the model did not call, as people drew it.

import { useEffect, useRef } from "preact/hooks";
import type { Missed } from "../types";
import { number, t } from "../words";
import { removeMissed, review } from "./review";

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
            <li key={index} class="row">
              <span class="label">{one.label}</span>
              <small>{extent(one)}</small>
              <button
                type="button"
                class="link remove"
                aria-label={t("review.missed.remove", { label: one.label })}
                onClick={() => removeMissed(index)}
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

function extent({ box_xyxy: box, polygon }: Missed): string {
  const xs = box ? [box[0], box[2]] : (polygon ?? []).map(([x]) => x);
  const ys = box ? [box[1], box[3]] : (polygon ?? []).map(([, y]) => y);
  const span = (values: number[]) => number(Math.max(...values) - Math.min(...values));
  return t("review.px", { width: span(xs), height: span(ys) });
}
