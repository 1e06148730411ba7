// What the station tells a person while something else goes on: one line each, read out, closed by hand or in time.

import { signal } from "@preact/signals";
import { t } from "./words";

interface Notice {
  id: number;
  kind: "info" | "error";
  words: string;
}

const notices = signal<Notice[]>([]);
let last = 0;
const INFO_MS = 6000;

/** Errors stay until they are closed. */
export function notify(words: string, kind: Notice["kind"] = "info"): void {
  const id = (last += 1);
  notices.value = [...notices.value.filter((other) => other.words !== words), { id, kind, words }].slice(-4);
  if (kind === "info") setTimeout(() => close(id), INFO_MS);
}

export function notifyError(error: unknown): void {
  if (!(error instanceof Error)) throw error;
  const hint = "hint" in error && typeof error.hint === "string" ? error.hint : "";
  notify([error.message, hint].filter(Boolean).join(" "), "error");
}

function close(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ id, kind, words }) => (
        <p key={id} class={kind} role={kind === "error" ? "alert" : "status"}>
          {words}
          <button type="button" class="link" aria-label={t("shell.close")} onClick={() => close(id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
