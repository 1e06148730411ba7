// The station's outbox: the browser's store, the service's routes, and the moments at which sending is worth a try.

import { effect, untracked } from "@preact/signals";
import { request, send } from "./api";
import { notify } from "./notices";
import { openOutbox } from "./outbox";
import { actor, session } from "./session";
import type { Review } from "./types";
import { t } from "./words";

export const outbox = openOutbox({
  store: localStorage,
  actor: () => actor() ?? "",
  read: (inspection) => request<Review>(`/v1/inspections/${inspection}/review`),
  post: (inspection, kind, body) => send<Review>("POST", `/v1/inspections/${inspection}/${kind}`, body),
  now: Date.now,
});

/** A change that cannot be written down is told at once: it would be lost with the page. */
export function keepOrTell(...change: Parameters<typeof outbox.keep>): void {
  try {
    outbox.keep(...change);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    notify(t("outbox.full"), "error");
  }
}

effect(() => {
  if (session.value.state !== "in") return;
  untracked(() => {
    outbox.refresh();
    outbox.flush();
  });
});
addEventListener("online", () => outbox.flush());
addEventListener("storage", () => outbox.refresh());
document.addEventListener("visibilitychange", () => outbox.flush());
