// What a person said and the server does not have yet. It is written down on this machine first, then sent in order.
//
// One record in the browser's store for each inspection and person; the store is the truth, so that a reload, a
// crash or a second window of the same person loses nothing. The server takes a document made from its newest
// revision only, and takes the same document twice as one: sending again is always safe.

import { signal } from "@preact/signals";
import { ApiError } from "./api-error";
import type { CallWord, Disposition, Missed, Review } from "./types";

export interface Verification {
  calls: CallWord[];
  missed: Missed[];
  checked: boolean;
}

export interface Fate {
  disposition: Disposition | null;
  note: string;
}

export interface Entry {
  inspection: string;
  /** What people call the board. */
  name: string;
  /** Revision of the server's review that this was made from. */
  expects: number;
  verification: Verification | null;
  fate: Fate | null;
  since: number;
  /** When it was last changed, ms. */
  changed: number;
  /** Sent, and never answered: JSON. If the server has one of them, it is ours. */
  tried: string[];
  /** Somebody else spoke first; how the review stands with what they said. */
  theirs: Review | null;
  /** The server will not take it; why. */
  refused: string;
}

type Said = Pick<Entry, "verification" | "fate">;

/** What it needs of the world around it. */
export interface World {
  store: Storage;
  /** Records of other people on this machine are not touched. */
  actor: () => string;
  read: (inspection: string) => Promise<Review>;
  post: (inspection: string, kind: "verifications" | "disposition", body: object) => Promise<Review>;
  now: () => number;
}

export const DEBOUNCE_MS = 900;
const LONGEST_WAIT_MS = 30_000;

export type Outbox = ReturnType<typeof openOutbox>;

export function openOutbox({ store, actor, read, post, now }: World) {
  const entries = signal<Entry[]>([]);
  /** Whether the last attempt did not reach the server. */
  const isOffline = signal(false);
  /** Whether the last attempt failed, for whatever reason; it is repeated. */
  const isHeldUp = signal(false);
  const listeners = new Set<(review: Review) => void>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isSending = false;
  let underWay = "";
  let failures = 0;

  const prefix = () => `station.outbox/${actor()}/`;

  function refresh(): void {
    const names = Array.from({ length: store.length }, (_, n) => store.key(n) ?? "");
    const found = names.filter((name) => name.startsWith(prefix())).map((name) => parse(store.getItem(name)));
    entries.value = found.filter((entry) => entry !== null).sort((one, other) => one.since - other.since);
  }

  function find(inspection: string): Entry | null {
    return parse(store.getItem(prefix() + inspection));
  }

  function write(entry: Entry): void {
    const isEmpty = !entry.verification && !entry.fate;
    if (isEmpty) store.removeItem(prefix() + entry.inspection);
    else store.setItem(prefix() + entry.inspection, JSON.stringify(entry));
    refresh();
  }

  /** `expects` counts for the first change only: later ones are made from the same revision. */
  function keep(inspection: string, name: string, expects: number, said: Partial<Said>): void {
    const before = find(inspection) ?? {
      ...{ inspection, name, expects, verification: null, fate: null },
      ...{ since: now(), tried: [], theirs: null, refused: "" },
    };
    write({ ...before, ...said, refused: "", changed: now() });
    plan(DEBOUNCE_MS);
  }

  function drop(inspection: string): void {
    store.removeItem(prefix() + inspection);
    refresh();
  }

  /** Forget what was not sent. False: it was, or may have been; then only another document takes it back. */
  function withdraw(inspection: string): boolean {
    const entry = find(inspection);
    if (!entry || entry.tried.length || underWay === inspection) return false;
    drop(inspection);
    return true;
  }

  /** Send over what somebody else said since: a person saw both and chose. */
  function insist(inspection: string): void {
    const entry = find(inspection);
    if (!entry?.theirs) return;
    write({ ...entry, expects: entry.theirs.revision, theirs: null, tried: [], changed: 0 });
    plan(0);
  }

  /** Send without waiting for further words. */
  function flush(): void {
    for (const entry of entries.value) if (!isStopped(entry)) write({ ...entry, changed: 0 });
    failures = 0;
    plan(0);
  }

  function plan(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void pump(), ms);
  }

  async function pump(): Promise<void> {
    if (isSending) return;
    isSending = true;
    /** Boards whose words the server failed at: the others' do not wait for them. */
    const passed = new Map<string, ApiError>();
    try {
      refresh();
      const isDue = (entry: Entry) =>
        !isStopped(entry) && !passed.has(entry.inspection) && now() - entry.changed >= DEBOUNCE_MS;
      let next: Entry | undefined;
      while ((next = entries.value.find(isDue))) {
        underWay = next.inspection;
        try {
          await send(next);
        } catch (error) {
          if (!(error instanceof ApiError) || isForAll(error.status)) throw error;
          passed.set(next.inspection, error);
        }
      }
      const [failed] = passed.values();
      if (failed) throw failed;
      failures = 0;
      isOffline.value = isHeldUp.value = false;
      const rest = entries.value.filter((entry) => !isStopped(entry));
      if (rest.length) plan(Math.max(20, Math.min(...rest.map((entry) => entry.changed)) + DEBOUNCE_MS - now()));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      isOffline.value = error.status === 0;
      isHeldUp.value = true;
      failures += 1;
      const wait = Math.min(LONGEST_WAIT_MS, 1000 * 2 ** (failures - 1));
      if (error.status !== 401) plan(error.retryAfterS ? error.retryAfterS * 1000 : wait);
    } finally {
      isSending = false;
      underWay = "";
    }
  }

  /** One document. Throws ApiError where it is worth trying again later. */
  async function send(entry: Entry): Promise<void> {
    const [kind, said] = entry.verification
      ? (["verifications", entry.verification] as const)
      : (["disposition", entry.fate!] as const);
    const text = JSON.stringify(said);
    try {
      const answer = await post(entry.inspection, kind, { expects: entry.expects, ...said });
      settle(entry.inspection, kind, text, answer);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const known = find(entry.inspection);
      if (error.status === 409) {
        await meet(entry.inspection);
      } else if (known && isFinal(error.status)) {
        write({ ...known, refused: reason(error) });
      } else {
        if (known) write({ ...known, tried: [...new Set([...known.tried, text])] });
        throw error;
      }
    }
  }

  /** The server has taken `text`: what is left is what was said since. */
  function settle(inspection: string, kind: "verifications" | "disposition", text: string, answer: Review): void {
    const part = kind === "verifications" ? "verification" : "fate";
    const known = find(inspection);
    if (known) {
      const isAll = JSON.stringify(known[part]) === text;
      write({ ...known, expects: answer.revision, tried: [], ...(isAll ? { [part]: null } : {}) });
    }
    for (const tell of listeners) tell(answer);
  }

  /** The server's review is another than the one we knew, or the board is gone. */
  async function meet(inspection: string): Promise<void> {
    const theirs = await read(inspection).catch((error: unknown) => {
      if (error instanceof ApiError && isFinal(error.status)) return error;
      throw error;
    });
    const known = find(inspection);
    if (!known) return;
    if (theirs instanceof ApiError) return write({ ...known, refused: reason(theirs) });
    const texts = [verificationOf(theirs), fateOf(theirs)];
    const isOurs = theirs.revision === known.expects + 1 && known.tried.some((text) => texts.includes(text));
    if (isOurs) write({ ...known, expects: theirs.revision, tried: [] });
    else write({ ...known, theirs });
  }

  refresh();
  return {
    entries,
    isOffline,
    isHeldUp,
    find,
    keep,
    drop,
    withdraw,
    insist,
    flush,
    refresh,
    /** Called with the server's review after each document it took. */
    onSent: (listener: (review: Review) => void) => listeners.add(listener),
  };
}

export function verificationOf({ calls, missed, checked }: Verification): string {
  return JSON.stringify({ calls, missed, checked });
}

export function fateOf({ disposition, note }: Fate): string {
  return JSON.stringify({ disposition, note });
}

function isStopped(entry: Entry): boolean {
  return entry.theirs !== null || entry.refused !== "";
}

/** Whether sending the same again cannot help. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 408, 429].includes(status);
}

/** Whether every other document would fail alike: no line, no session, a busy server. */
function isForAll(status: number): boolean {
  return [0, 401, 429, 503].includes(status);
}

function reason({ message, hint }: ApiError): string {
  return [message, hint].filter(Boolean).join(" ");
}

function parse(text: string | null): Entry | null {
  return text === null ? null : (JSON.parse(text) as Entry);
}
