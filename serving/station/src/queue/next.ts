// The way from one board to the next: in the queue's order, past what is done.

import { notify, notifyError } from "../notices";
import { go } from "../route";
import { outbox } from "../sending";
import type { QueueItem } from "../types";
import { t } from "../words";
import { isNarrowed, writeFilter } from "./filter";
import { failure, filter, hasMore, items, load, markDone, more, state } from "./list";
import { prefetch } from "./prefetch";

/** The next open board behind this one, else the first open one of all; null: none is open. */
export async function nextOpen(id: string): Promise<QueueItem | null> {
  // A list of what is done has no open board; the way on leads through the open ones of the same filter.
  const isElsewhere = filter.value.state === "done";
  if (state.value !== "here" || isElsewhere) await load(isElsewhere ? { ...filter.value, state: "open" } : filter.value);
  if (state.value === "failed") throw failure.value;
  const at = items.value.findIndex((item) => item.id === id);
  let from = at + 1;
  for (;;) {
    const found = items.value.slice(from).find((item) => isOpen(item) && item.id !== id);
    if (found) return found;
    from = items.value.length;
    if (!hasMore.value || !(await more())) break;
  }
  return items.value.find((item) => isOpen(item) && item.id !== id) ?? null;
}

function isOpen(item: QueueItem): boolean {
  const unsent = outbox.find(item.id);
  const isLeft = !!unsent?.verification?.checked || !!unsent?.fate; // the server tells of it as it was before
  return item.state === "open" && !isLeft && (item.verdict !== "PASS" || item.audit);
}

/** Open the next board, or the queue where none is left. */
export async function goNext(id: string): Promise<void> {
  try {
    const found = await nextOpen(id);
    if (found) return go("board", found.id);
    // The queue says so itself where nothing hides its boards.
    if (filter.value.state !== "open" || isNarrowed(filter.value)) notify(t("queue.clear"));
    go("queue", "", writeFilter(filter.value));
  } catch (error) {
    notifyError(error);
  }
}

/** This board is dealt with. */
export function leave(id: string): Promise<void> {
  markDone(id);
  return goNext(id);
}

/** Have the first pictures of the next board ready. */
export async function prepareNext(id: string): Promise<void> {
  const found = await nextOpen(id).catch(() => null); // the next key says what is wrong
  if (found) await prefetch(found.id);
}
