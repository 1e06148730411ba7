// The queue: which boards wait for a person, in which order, and the way to the first of them.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useBack } from "../back";
import { isLive } from "../live";
import { nameKeys } from "../keys";
import { place, replaceQuery } from "../route";
import { t } from "../words";
import { NothingHere } from "../queue/empty";
import { Facets } from "../queue/facets";
import { NOTHING, ORDERS, queueAddress, readFilter, writeFilter, type Filter } from "../queue/filter";
import { arrived, chosen, counts, failure, filter, isAtRest, items, load, showArrived, state, tidy } from "../queue/list";
import { goNext } from "../queue/next";
import { moveChoice, openChosen, Rows } from "../queue/rows";
import "../queue/queue.css";

/** The board page is fetched while the queue is read: the first click then waits for the board alone. */
const PAGE_AHEAD_MS = 300;

export function Queue() {
  const asked = readFilter(place.value.query);
  const question = queueAddress(asked, 1);
  const scroller = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const isPointedAt = useSignal(false);

  useEffect(() => {
    const isSame = state.value === "here" && queueAddress(filter.value, 1) === question;
    if (isSame) tidy(asked);
    else void load(asked);
  }, [question]);
  useEffect(() => {
    const timer = setTimeout(() => void import("./board").catch(() => undefined), PAGE_AHEAD_MS);
    return () => clearTimeout(timer);
  }, []);
  useBack(() => state.value === "failed" && void load(asked));

  const rest = () => {
    const isTop = (scroller.current?.scrollTop ?? 0) < 8;
    isAtRest.value = isTop && !isPointedAt.value && (chosen.value === null || chosen.value === items.value[0]?.id);
    if (isAtRest.value && arrived.value.length) showArrived();
  };
  useEffect(() => {
    rest();
    return () => (isAtRest.value = true);
  }, [chosen.value, isPointedAt.value]);

  const top = () => {
    showArrived();
    chosen.value = items.value[0]?.id ?? null;
    scroller.current?.scrollTo({ top: 0 });
  };
  useLayoutEffect(
    () =>
      nameKeys([
        { key: "n", words: t("queue.key.next"), run: () => void goNext("") },
        { key: "j", words: t("queue.key.down"), run: () => moveChoice(1), repeats: true },
        { key: "k", words: t("queue.key.up"), run: () => moveChoice(-1), repeats: true },
        { key: "arrowdown", words: t("queue.key.down"), run: () => moveChoice(1), repeats: true },
        { key: "arrowup", words: t("queue.key.up"), run: () => moveChoice(-1), repeats: true },
        { key: "enter", words: t("queue.key.open"), run: openChosen },
        { key: "t", words: t("queue.key.top"), run: top },
        { key: "/", words: t("queue.key.search"), run: () => search.current?.focus() },
      ]),
    [t("queue.key.next")],
  );

  const change = (changed: Partial<Filter>) => replaceQuery(writeFilter({ ...asked, ...changed }));
  return (
    <div class="queue">
      <Facets asked={asked} change={change} search={search} />
      <section aria-label={t("shell.queue")}>
        <header class="bar">
          <div class="segments" role="group" aria-label={t("queue.order")}>
            {ORDERS.map((order) => (
              <button type="button" key={order} aria-pressed={asked.order === order} onClick={() => change({ order })}>
                {t(`queue.order.${order}`)}
              </button>
            ))}
          </div>
          <p class={isLive.value ? "live on" : "live"} role="status">
            {t(isLive.value ? "queue.live" : "queue.notlive")}
          </p>
          <button type="button" class="primary next" disabled={!counts.value?.open} onClick={() => void goNext("")}>
            {t("queue.start")} <kbd>N</kbd>
          </button>
        </header>
        <div class="list" ref={scroller} onScroll={rest} aria-busy={state.value === "loading"}>
          <div aria-live="polite" class="pillplace">
            {arrived.value.length > 0 && (
              <button type="button" class="pill primary" onClick={top}>
                {t("queue.arrived", { n: arrived.value.length })} <kbd>T</kbd>
              </button>
            )}
          </div>
          <div onPointerEnter={() => (isPointedAt.value = true)} onPointerLeave={() => (isPointedAt.value = false)}>
            <Body asked={asked} clear={() => change(NOTHING)} />
          </div>
        </div>
      </section>
    </div>
  );
}

function Body({ asked, clear }: { asked: Filter; clear: () => void }) {
  if (state.value === "failed") {
    const { message, hint = "" } = failure.value as { message: string; hint?: string };
    return (
      <div class="empty" role="alert">
        <h2>{message}</h2>
        <p>{hint}</p>
        <button type="button" onClick={() => void load(asked)}>
          {t("shell.retry")}
        </button>
      </div>
    );
  }
  if (items.value.length) return <Rows by={asked.order} />;
  if (state.value === "here") return <NothingHere asked={asked} clear={clear} />;
  return <p class="empty">{t("shell.loading")}</p>;
}
