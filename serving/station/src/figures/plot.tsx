// What all plots share: their width, and the table behind each.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../words";

/** A ref for a box, and its width in px, followed. */
export function useWidth(first: number) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.max(240, Math.round(element.clientWidth)));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return { box, width };
}

export function Panel(props: { name: string; kind?: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class={`card panel ${props.kind ?? ""}`} aria-label={props.name}>
      <div class="panel-head">
        <h2>{props.name}</h2>
        {props.actions}
      </div>
      {props.children}
    </section>
  );
}

/** The values of a plot, for a screen reader and for whoever wants them exactly. */
export function Behind({ name, head, rows }: { name: string; head: string[]; rows: (string | number)[][] }) {
  return (
    <details class="behind">
      <summary>{t("figures.as_table")}</summary>
      <div class="behind-table" tabIndex={0} role="region" aria-label={name}>
        <table>
          <caption class="unseen">{name}</caption>
          <thead>
            <tr>
              {head.map((cell) => (
                <th key={cell} scope="col">
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

export function Key({ kind, words }: { kind: string; words: string }) {
  return (
    <span class="key">
      <i class={`swatch ${kind}`} />
      {words}
    </span>
  );
}
