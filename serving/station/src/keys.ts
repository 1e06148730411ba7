// One listener for the whole keyboard. Pages name what their keys do; a barcode scanner is told apart from a person.
//
// A scan opens its board and does nothing else, wherever the focus is: in a field, in a dialog, while an input
// method composes. What it wrote on its way is taken out again. A field marked data-scan="here" wants scans itself.

import { signal } from "@preact/signals";
import { watchBursts } from "./burst";

export interface Action {
  /** As KeyboardEvent.key spells it, in lower case; "shift+enter" and "ctrl+z" with modifiers. */
  key: string;
  words: string;
  run: () => void;
  /** Held down: `run` when it goes down, `release` when it goes up. */
  release?: () => void;
  /** Holding the key down repeats it. */
  repeats?: boolean;
  /** Works while a dialog is open, and only then. */
  inDialog?: boolean;
}

/** What keys do now, by who named them: shown on the page, and by "?". */
export const actions = signal<Action[]>([]);

/** Name keys; returns what takes them back. For useEffect. */
export function nameKeys(named: Action[]): () => void {
  actions.value = [...actions.value, ...named];
  return () => (actions.value = actions.value.filter((action) => !named.includes(action)));
}

/** The actions that keys reach at this moment. */
export function reachable(): Action[] {
  const isInDialog = document.querySelector("dialog:modal") !== null;
  return actions.value.filter((action) => !!action.inDialog === isInDialog);
}

let onScan: ((serial: string) => void) | null = null;
let keepState: () => () => void = () => () => {};

/** null: nobody is logged in, and a badge is scanned into the field for the key. */
export function setScanListener(listener: ((serial: string) => void) | null): void {
  onScan = listener;
}

/**
 * `keep` is called with the first key of what may be a scan; what it returns puts things back as they were then.
 * Keys of a scan wait for each other, but a browser that is held up may deliver them too late for that.
 */
export function guardAgainstScans(keep: () => () => void): void {
  keepState = keep;
}

export function startKeys(): void {
  addEventListener("keydown", down, { capture: true });
  addEventListener("keyup", up, { capture: true });
  addEventListener("blur", letGo);
  addEventListener("pointerdown", (event) => (pointed = controlOf(event.target)), { capture: true });
}

let field: { element: Editable; value: string } | null = null;
let restore: () => void = () => {};
let held: Action | null = null;
// What was clicked last keeps the focus; Enter then means the page and not one more click of the same button.
let pointed: Element | null = null;

const burst = watchBursts({
  begin() {
    const element = document.activeElement;
    field = isEditable(element) ? { element, value: element.value } : null;
    restore = keepState();
  },
  scan(serial) {
    restore();
    if (field) takeBack(field.element, field.value);
    onScan?.(serial);
  },
});

function down(event: KeyboardEvent): void {
  if (event.key === "Shift" || event.key === "CapsLock") return;
  if (event.key === "Tab") pointed = null;
  if (!onScan || (event.target as Element | null)?.closest?.("[data-scan=here]")) return act(event, burst.other);
  const isEnter = event.key === "Enter" || event.code === "Enter" || event.code === "NumpadEnter";
  if (isEnter) {
    if (!burst.enter(event.timeStamp)) return act(event);
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  const char = charOf(event);
  if (char === null) return act(event, burst.other);
  if (event.repeat) return act(event);
  const action = find(event);
  if (action) event.preventDefault();
  if (action?.release) start(action);
  const isFast = burst.type(char, event.timeStamp, action && !action.release ? action.run : null);
  if (isFast && char === " " && !isWriting(event.target as Element)) event.preventDefault(); // no click of a button
}

function act(event: KeyboardEvent, before?: () => void): void {
  before?.();
  const action = find(event);
  if (!action) return;
  event.preventDefault();
  if (event.repeat && !action.repeats) return;
  if (action.release) start(action);
  else action.run();
}

function start(action: Action): void {
  held = action;
  action.run();
}

function up(event: KeyboardEvent): void {
  if (held && event.key.toLowerCase() === held.key) letGo();
}

/** Also when another window takes the keyboard: it is not heard then that the key goes up. */
function letGo(): void {
  held?.release?.();
  held = null;
}

function find(event: KeyboardEvent): Action | undefined {
  if (event.altKey || event.metaKey || event.isComposing || isNative(event)) return undefined;
  const key = event.key.toLowerCase();
  const name = event.ctrlKey ? `ctrl+${key}` : event.shiftKey && key.length > 1 ? `shift+${key}` : key;
  return reachable().findLast((action) => action.key === name);
}

/** The character a key types; while an input method composes, the one printed on the key. */
function charOf(event: KeyboardEvent): string | null {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.key.length === 1) return event.key;
  if (event.key !== "Process" && !event.isComposing) return null;
  const printed = /^(?:Key([A-Z])|(?:Digit|Numpad)(\d))$/.exec(event.code);
  if (printed) return printed[1] ?? printed[2] ?? null;
  return PRINTED[event.code] ?? null;
}

const PRINTED: Record<string, string> = {
  Minus: "-",
  NumpadSubtract: "-",
  Period: ".",
  NumpadDecimal: ".",
  Slash: "/",
  NumpadDivide: "/",
  Space: " ",
};

/** Whether the browser itself does something with this key where the focus is. */
function isNative(event: KeyboardEvent): boolean {
  const target = event.target as Element | null;
  if (isWriting(target)) return true;
  const control = controlOf(target);
  if (control === null || control === pointed) return false;
  return event.key === "Enter" || event.key === " ";
}

function isWriting(target: Element | null): boolean {
  return !!target?.closest?.(
    "input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]",
  );
}

function controlOf(target: EventTarget | null): Element | null {
  if (!(target instanceof Element)) return null;
  return target.closest("button, a[href], summary, input[type=checkbox], input[type=radio]");
}

type Editable = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

function isEditable(element: Element | null): element is Editable {
  return isWriting(element) && element !== null && "value" in element;
}

/** The text as it was before a scan into it. An input method writes once more when its composition ends. */
function takeBack(element: Editable, value: string): void {
  const put = () => {
    if (element.value === value) return;
    element.value = value;
    element.dispatchEvent(new Event(element instanceof HTMLSelectElement ? "change" : "input", { bubbles: true }));
  };
  put();
  element.addEventListener("compositionend", put, { once: true });
  element.blur(); // ends a composition; the board that opens takes the keys
  setTimeout(() => element.removeEventListener("compositionend", put), 500);
  setTimeout(put);
}
