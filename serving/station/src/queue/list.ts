// The queue as it was last read, kept while a board is open, and moved on by what the server tells.

import { computed, signal } from "@preact/signals";
import { request } from "../api";
import { listen, type ReviewTold } from "../live";
import { outbox } from "../sending";
import type { QueueItem, QueuePage } from "../types";
import { compare, isWanted, queueAddress, readFilter, writeFilter, type Filter } from "./filter";

const AT_ONCE = 50;
const COUNT_AGAIN_MS = 1500;
const KEPT = "station.queue";

export const filter = signal<Filter>(readFilter(new URLSearchParams(sessionStorage.getItem(KEPT) ?? "")));
export const items = signal<QueueItem[]>([]);
export const counts = signal<QueuePage["counts"] | null>(null);
export const state = signal<"new" | "loading" | "here" | "failed">("new");
export const failure = signal<unknown>(null);
export const next = signal<string | null>(null);
/** Arrived, and not shown yet: the list does not move under the eye. */
export const arrived = signal<QueueItem[]>([]);
/** The line one is on, by its id. */
export const chosen = signal<string | null>(null);
/** Whether the list may grow at its top at once. Set by the page: false while it is scrolled or pointed at. */
export const isAtRest = signal(true);

export const hasMore = computed(() => next.value !== null);

let asked = 0;

/** Show what `chosen` names, from the start. */
export async function load(chosen: Filter): Promise<void> {
  const mine = (asked += 1);
  filter.value = chosen;
  sessionStorage.setItem(KEPT, new URLSearchParams(writeFilter(chosen)).toString());
  state.value = "loading";
  arrived.value = [];
  try {
    const page = await request<QueuePage>(queueAddress(chosen, AT_ONCE));
    if (mine !== asked) return;
    items.value = page.items;
    next.value = page.next;
    counts.value = page.counts;
    state.value = "here";
  } catch (error) {
    if (mine !== asked) return;
    failure.value = error;
    state.value = "failed";
  }
}

let isReading = false;

/** Read the next page. False: there is none, or it could not be read. */
export async function more(): Promise<boolean> {
  const link = next.value;
  if (!link || isReading) return false;
  const mine = asked;
  isReading = true;
  try {
    const page = await request<QueuePage>(link);
    if (mine !== asked) return false;
    items.value = merged(items.value, page.items);
    next.value = page.next;
    return page.items.length > 0;
  } catch (error) {
    failure.value = error;
    return false;
  } finally {
    isReading = false;
  }
}

/** Put what arrived into its places. */
export function showArrived(): void {
  items.value = merged(items.value, arrived.value);
  arrived.value = [];
}

/** Back at the queue: what was done meanwhile leaves it. */
export function tidy(asked: Filter): void {
  items.value = items.value.filter((item) => isWanted(item, asked));
  showArrived();
  countSoon();
}

/** A board was dealt with here: its place in the list stays, and it is not opened again as the next one. */
export function markDone(id: string): void {
  patch(id, { state: "done" });
}

/** News that was overtaken, an older revision than is known here, changes nothing. */
function patch(id: string, change: Partial<QueueItem>): void {
  const apply = (item: QueueItem) =>
    item.id === id && (change.revision ?? item.revision) >= item.revision ? { ...item, ...change } : item;
  items.value = items.value.map(apply);
  arrived.value = arrived.value.map(apply);
}

function merged(shown: QueueItem[], added: QueueItem[]): QueueItem[] {
  const { order } = filter.value;
  const known = new Set(shown.map(({ id }) => id));
  const all = [...shown, ...added.filter(({ id }) => !known.has(id))];
  return all.sort((one, other) => compare(order, one, other));
}

/** Whether a board has its place in the part of the list that was read. */
function isWithin(item: QueueItem): boolean {
  const last = items.value.at(-1);
  return next.value === null || (last !== undefined && compare(filter.value.order, item, last) < 0);
}

function receive(item: QueueItem): void {
  if (state.value !== "here") return;
  countSoon();
  const isKnown = [...items.value, ...arrived.value].some(({ id }) => id === item.id);
  if (isKnown || !isWanted(item, filter.value) || !isWithin(item)) return;
  arrived.value = [...arrived.value, item];
  if (isAtRest.value) showArrived();
}

function hear({ id, revision, state: told }: ReviewTold): void {
  patch(id, { revision, state: told });
  countSoon();
}

let timer: ReturnType<typeof setTimeout> | undefined;

/** The counts are the server's: it counts what is not shown, too. */
function countSoon(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void recount();
  }, COUNT_AGAIN_MS);
}

/** Read the first page again without moving the list: counts, and boards of which nobody told. */
async function recount(): Promise<void> {
  if (state.value !== "here") return;
  const mine = asked;
  const page = await request<QueuePage>(queueAddress(filter.value, AT_ONCE)).catch(() => null);
  if (!page || mine !== asked) return; // the next event or page asks again
  counts.value = page.counts;
  for (const item of page.items) {
    if (items.value.some(({ id }) => id === item.id)) patch(item.id, item);
    else if (!arrived.value.some(({ id }) => id === item.id)) arrived.value = [...arrived.value, item];
  }
  if (isAtRest.value && arrived.value.length) showArrived();
}

outbox.onSent(({ inspection, revision, state: now }) => patch(inspection, { revision, state: now }));

/** The server is heard again after a silence. */
function hearAgain(): void {
  if (state.value === "failed") void load(filter.value);
  else countSoon();
}

listen({ inspection: receive, review: hear, missed: hearAgain });
