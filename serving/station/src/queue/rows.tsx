// The boards of the queue, one line each. Each line is a link, so that it opens as every link does.

import { signal, useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, link } from "../route";
import type { QueueItem } from "../types";
import { number, t, time } from "../words";
import { age } from "./age";
import type { Order } from "./filter";
import { chosen, hasMore, items, more } from "./list";

export function moveChoice(step: number): void {
  const at = items.value.findIndex(({ id }) => id === chosen.value);
  const to = items.value[Math.max(0, Math.min(items.value.length - 1, at + step))];
  if (!to) return;
  chosen.value = to.id;
  const row = document.getElementById(`row-${to.id}`);
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

export function openChosen(): void {
  const item = items.value.find(({ id }) => id === chosen.value) ?? items.value[0];
  if (item) go("board", item.id);
}

export function Rows({ by }: { by: Order }) {
  const end = useRef<HTMLLIElement>(null);
  useEffect(() => {
    const element = document.getElementById(`row-${chosen.value ?? ""}`);
    element?.scrollIntoView({ block: "nearest" });
    element?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    if (!end.current) return;
    const watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && void more(), {
      rootMargin: "600px",
    });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [hasMore.value, items.value.length]);
  return (
    <ol class="rows">
      {items.value.map((item) => (
        <Row key={item.id} item={item} by={by} />
      ))}
      {hasMore.value && (
        <li ref={end} class="empty">
          {t("shell.loading")}
        </li>
      )}
    </ol>
  );
}

function Row({ item, by }: { item: QueueItem; by: Order }) {
  // Of a thousand lines, a key draws two anew.
  const current = useComputed(() => (chosen.value === item.id ? "true" : undefined));
  const isDone = item.state === "done";
  const value = by === "uncertain" ? item.uncertainty : item.score;
  const words = by === "uncertain" ? "queue.uncertainty" : "queue.score";
  return (
    <li class={isDone ? "done" : undefined}>
      <a
        id={`row-${item.id}`}
        href={link("board", item.id)}
        aria-current={current}
        onFocus={() => (chosen.value = item.id)}
      >
        <Thumbnail url={item.links.thumbnail} />
        <span class={`verdict ${item.verdict}`}>{item.verdict}</span>
        <span class="name">
          <strong>{item.serial ?? t("queue.noserial", { id: item.id.slice(-6) })}</strong>
          <small>
            {[item.recipe, item.attempt && item.attempt > 1 ? t("queue.attempt", { n: item.attempt }) : null]
              .filter(Boolean)
              .join(" \u00b7 ") || t("queue.norecipe")}
          </small>
        </span>
        <span class="classes">
          {item.labels.slice(0, 4).map((label) => (
            <span class="chip" key={label}>
              {label}
            </span>
          ))}
          <small>{[item.labels.length > 4 && `+${item.labels.length - 4}`, calls(item)].filter(Boolean).join(" \u00b7 ")}</small>
        </span>
        <span class={`score ${item.verdict}`} title={t(words, { value: number(value, 2) })}>
          <span class="track">
            <span style={{ width: `${100 * value}%` }} />
          </span>
          {number(value, 2)}
        </span>
        <span class="state">
          {item.audit && <span class="chip audit">{t("queue.audit")}</span>}
          {isDone ? <Outcome item={item} /> : item.revision > 0 && <small>{t("queue.begun")}</small>}
        </span>
        <time dateTime={item.created} title={time(item.created)}>
          {age(item.created)}
        </time>
      </a>
    </li>
  );
}

function calls({ verdict, num_defects: n }: QueueItem): string {
  if (verdict === "ERROR") return t("queue.notinspected");
  return t("queue.calls", { n: number(n) });
}

function Outcome({ item }: { item: QueueItem }) {
  return (
    <small class="outcome">
      {t(item.final === "bad" ? "queue.bad" : item.final === "good" ? "queue.good" : "queue.done")}
      {item.disposition && <>, {t(`disposition.${item.disposition}`)}</>}
    </small>
  );
}

const broken = signal<ReadonlySet<string>>(new Set());

/** Pictures may be gone by retention while the report is still there. */
function Thumbnail({ url }: { url: string }) {
  if (broken.value.has(url)) return <span class="thumbnail" aria-hidden="true" />;
  const fail = () => (broken.value = new Set([...broken.value, url]));
  return <img class="thumbnail" src={url} alt="" loading="lazy" decoding="async" onError={fail} />;
}
