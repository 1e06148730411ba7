// What happens on the line while one looks: new inspections and other people's reviews, as the server tells them.

import { effect, signal } from "@preact/signals";
import { may } from "./session";
import type { QueueItem } from "./types";

export interface ReviewTold {
  id: string;
  revision: number;
  state: "open" | "done";
  actor: string;
}

interface Listener {
  inspection?: (item: QueueItem) => void;
  review?: (told: ReviewTold) => void;
  /** A job began, went on or ended. */
  job?: () => void;
  /** Things may have happened that were not told: read again what is shown. */
  missed?: () => void;
}

export const isLive = signal(false);

const AGAIN_MS = 10_000;
const listeners = new Set<Listener>();
let source: EventSource | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Returns what ends it. The server is asked as long as anybody listens and the page is in sight. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  open();
  return () => {
    listeners.delete(listener);
    if (!listeners.size) close();
  };
}

function open(): void {
  if (source || !listeners.size || document.hidden || !may("operator")) return;
  clearTimeout(timer);
  source = new EventSource("/v1/events");
  source.addEventListener("open", () => {
    isLive.value = true;
    tell((listener) => listener.missed?.());
  });
  source.addEventListener("inspection", (event) => {
    const item = JSON.parse(event.data as string) as QueueItem;
    tell((listener) => listener.inspection?.(item));
  });
  source.addEventListener("review", (event) => {
    const told = JSON.parse(event.data as string) as ReviewTold;
    tell((listener) => listener.review?.(told));
  });
  source.addEventListener("job", () => tell((listener) => listener.job?.()));
  source.addEventListener("error", () => {
    isLive.value = false;
    if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
    source = null;
    // The server has too many listeners, or does not know who this is: ask now and then instead.
    timer = setTimeout(() => {
      tell((listener) => listener.missed?.());
      open();
    }, AGAIN_MS);
  });
}

function close(): void {
  clearTimeout(timer);
  source?.close();
  source = null;
  isLive.value = false;
}

function tell(what: (listener: Listener) => void): void {
  for (const listener of [...listeners]) what(listener);
}

// A browser has few connections to one server: a tab out of sight gives its own back.
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
effect(() => (may("operator") ? open() : close()));
