// One listener for the whole keyboard. Pages name what their keys do; a barcode scanner is told apart from a person.
//
// A scanner types a serial and Enter within some 50 ms. So a key does its work only when no other follows within
// BURST_MS, and what came faster is a scan: it opens that board and does nothing else, wherever the focus is.

import { signal } from "@preact/signals";

export interface Action {
  /** As KeyboardEvent.key spells it, in lower case; "shift+z" and "ctrl+z" with modifiers. */
  key: string;
  words: string;
  run: () => void;
  /** Held down: `run` when it goes down, `release` when it goes up. */
  release?: () => void;
}

/** What keys do now, by who named them: shown on the page, and by "?". */
export const actions = signal<Action[]>([]);

export const BURST_MS = 45;
const LEAST_SCAN = 4;

let onScan: (serial: string) => void = () => {};

export function setScanListener(listener: (serial: string) => void): void {
  onScan = listener;
}

/** Name keys; returns what takes them back. For useEffect. */
export function nameKeys(named: Action[]): () => void {
  actions.value = [...actions.value, ...named];
  return () => (actions.value = actions.value.filter((action) => !named.includes(action)));
}

export function startKeys(): void {
  addEventListener("keydown", down, { capture: true });
  addEventListener("keyup", up, { capture: true });
}

// The burst so far, and the action that waits to see whether its key was the first of one.
let burst = "";
let lastAt = -Infinity;
let waiting: { timer: number; run: () => void } | null = null;
let held: Action | null = null;

function down(event: KeyboardEvent): void {
  const typed = charOf(event);
  const isFast = event.timeStamp - lastAt < BURST_MS;
  if (typed !== null || event.key === "Enter" || event.code === "Enter") lastAt = event.timeStamp;
  if ((event.key === "Enter" || event.code === "Enter") && isFast && burst.length >= LEAST_SCAN) {
    event.preventDefault();
    event.stopPropagation();
    forget();
    const serial = burst;
    burst = "";
    takeOut(event.target, serial);
    onScan(serial);
    return;
  }
  if (typed !== null) burst = isFast ? burst + typed : typed;
  else if (event.key !== "Shift") burst = "";
  if (typed !== null && isFast) forget();
  if (event.isComposing || isTyping(event) || event.repeat) return;
  const action = find(event);
  if (!action) return;
  event.preventDefault();
  if (action.release) {
    held = action;
    action.run();
  } else if (typed === null || event.ctrlKey) {
    action.run();
  } else if (!isFast) {
    const timer = setTimeout(() => {
      waiting = null;
      action.run();
    }, BURST_MS);
    waiting = { timer: timer as unknown as number, run: action.run };
  }
}

function up(event: KeyboardEvent): void {
  if (held && event.key.toLowerCase() === held.key) {
    held.release?.();
    held = null;
  }
}

function forget(): void {
  if (waiting) clearTimeout(waiting.timer);
  waiting = null;
}

function find(event: KeyboardEvent): Action | undefined {
  if (event.altKey || event.metaKey) return undefined;
  const key = event.key.toLowerCase();
  const name = event.ctrlKey ? `ctrl+${key}` : event.shiftKey && key.length > 1 ? `shift+${key}` : key;
  return actions.value.findLast((action) => action.key === name);
}

/** The character a key types; while an input method composes, the one printed on the key. */
function charOf(event: KeyboardEvent): string | null {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.key.length === 1) return event.key;
  if (event.key !== "Process" && !event.isComposing) return null;
  const printed = /^(?:Key([A-Z])|Digit(\d))$/.exec(event.code);
  if (printed) return printed[1] ?? printed[2] ?? null;
  return event.code === "Minus" ? "-" : null;
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return !!target?.closest?.("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]");
}

/** A scan into a field: take it out again. */
function takeOut(target: EventTarget | null, serial: string): void {
  if (!(target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement)) return;
  if (target.value.endsWith(serial)) {
    target.value = target.value.slice(0, -serial.length);
    target.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
