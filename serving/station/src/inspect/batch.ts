// The boards that are chosen, being sent and answered. They live outside the page, so that looking at a board of the
// queue meanwhile stops nothing.

import { computed, effect, signal } from "@preact/signals";
import { ApiError, newKey } from "../api";
import type { Report } from "../types";
import { ownerOf, pair, serialOf } from "./pairing";
import { smallPicture } from "./small_picture";
import { upload } from "./upload";

export const AT_ONCE = 3;
const LONGEST_WAIT_S = 30;
const WORTH_REPEATING = [0, 408, 429, 503];

export type State = "waiting" | "queued" | "sending" | "inspecting" | "pausing" | "done" | "failed";

export interface Row {
  id: number;
  board: File;
  /** Address of a small picture of it; null where the browser cannot show the format. */
  picture: string | null;
  reference: File | null;
  /** Paired by hand: new files change it no more. */
  isChosen: boolean;
  serial: string;
  state: State;
  sent: number;
  /** Of the posting as it stands: a change makes it another one. */
  key: string;
  report: Report | null;
  error: ApiError | null;
  waitS: number;
}

export const rows = signal<Row[]>([]);
export const references = signal<File[]>([]);
/** The recipe's name, "" for none. A line makes one product for hours: it is kept. */
export const recipe = signal(localStorage.getItem("station.recipe") ?? "");
effect(() => localStorage.setItem("station.recipe", recipe.value));
/** The chosen recipe has references of its own, and takes none from here. */
export const recipeHasReferences = signal(false);

const BUSY: State[] = ["queued", "sending", "inspecting", "pausing"];
export const isBusy = computed(() => rows.value.some((row) => BUSY.includes(row.state)));
export const toSend = computed(() => rows.value.filter((row) => ["waiting", "failed"].includes(row.state)));
export const done = computed(() => rows.value.filter((row) => row.state === "done"));

let lastId = 0;
const stops = new Map<number, AbortController>();

addEventListener("beforeunload", (event) => isBusy.value && event.preventDefault());

export function addFiles(files: File[]): void {
  references.value = [...references.value, ...files.filter((file) => ownerOf(file.name) !== null)];
  addBoards(files.filter((file) => ownerOf(file.name) === null));
  pairAgain();
}

function addBoards(files: File[]): void {
  const added = files.map((board): Row => ({
    id: (lastId += 1),
    board,
    picture: null,
    reference: null,
    isChosen: false,
    serial: serialOf(board.name),
    state: "waiting",
    sent: 0,
    key: newKey(),
    report: null,
    error: null,
    waitS: 0,
  }));
  rows.value = [...rows.value, ...added];
  for (const { id, board } of added) void smallPicture(board).then((picture) => change(id, { picture }));
}

export function useAsReference(row: Row): void {
  removeRow(row.id);
  references.value = [...references.value, row.board];
  pairAgain();
}

export function useAsBoard(file: File): void {
  removeReference(file);
  addBoards([file]);
  pairAgain();
}

export function removeReference(file: File): void {
  references.value = references.value.filter((one) => one !== file);
  rows.value = rows.value.map((row) => (row.reference === file && canChange(row) ? renew(row, { reference: null }) : row));
}

export function chooseReference(id: number, reference: File | null): void {
  rows.value = rows.value.map((row) => (row.id === id ? renew(row, { reference, isChosen: true }) : row));
}

export function chooseForAll(reference: File | null): void {
  rows.value = rows.value.map((row) => (canChange(row) ? renew(row, { reference, isChosen: true }) : row));
}

export function setSerial(id: number, serial: string): void {
  rows.value = rows.value.map((row) => (row.id === id ? renew(row, { serial }) : row));
}

export function chooseRecipe(name: string): void {
  recipe.value = name;
  rows.value = rows.value.map((row) => (canChange(row) ? renew(row, {}) : row));
}

export function removeRow(id: number): void {
  stops.get(id)?.abort();
  const gone = rows.value.find((row) => row.id === id);
  if (gone?.picture) URL.revokeObjectURL(gone.picture);
  rows.value = rows.value.filter((row) => row.id !== id);
}

export function clearDone(): void {
  for (const { id } of done.value) removeRow(id);
  if (!rows.value.length) references.value = [];
}

export function start(): void {
  rows.value = rows.value.map((row) => (canChange(row) ? { ...row, state: "queued", error: null } : row));
  pump();
}

/** Stop what has no answer yet; what was stopped can be started again and repeats nothing. */
export function stop(): void {
  stopQueued();
  for (const controller of stops.values()) controller.abort();
}

function stopQueued(): void {
  rows.value = rows.value.map((row) => (row.state === "queued" ? { ...row, state: "waiting" } : row));
}

export function canChange(row: Row): boolean {
  return row.state === "waiting" || row.state === "failed";
}

function pairAgain(): void {
  const open = rows.value.filter((row) => canChange(row) && !row.isChosen);
  const found = pair(open.map((row) => row.board.name), references.value);
  const byId = new Map(open.map((row, index) => [row.id, found[index] ?? null]));
  rows.value = rows.value.map((row) => {
    const reference = byId.get(row.id);
    return reference === undefined || reference === row.reference ? row : renew(row, { reference });
  });
}

function renew(row: Row, changed: Partial<Row>): Row {
  return { ...row, ...changed, key: newKey() };
}

function change(id: number, changed: Partial<Row>): void {
  rows.value = rows.value.map((row) => (row.id === id ? { ...row, ...changed } : row));
}

function pump(): void {
  while (stops.size < AT_ONCE) {
    const next = rows.value.find((row) => row.state === "queued");
    if (!next) return;
    const controller = new AbortController();
    stops.set(next.id, controller);
    change(next.id, { state: "sending", sent: 0 });
    void sendOne(next, controller.signal).finally(() => {
      stops.delete(next.id);
      pump();
    });
  }
}

async function sendOne(row: Row, stopped: AbortSignal): Promise<void> {
  const reference = recipeHasReferences.value ? null : row.reference;
  const posting = { board: row.board, reference, serial: row.serial.trim(), recipe: recipe.value, key: row.key };
  for (let attempt = 0; ; attempt += 1) {
    try {
      const tell = (sent: number) => change(row.id, { sent, state: sent < 1 ? "sending" : "inspecting" });
      change(row.id, { state: "done", report: await upload(posting, tell, stopped) });
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) return change(row.id, { state: "waiting" }); // stopped
      if (error.status === 401) stopQueued();
      if (error.status === 401) return change(row.id, { state: "waiting", error });
      if (!WORTH_REPEATING.includes(error.status)) return change(row.id, { state: "failed", error });
      const waitS = error.retryAfterS ?? Math.min(2 ** attempt, LONGEST_WAIT_S);
      change(row.id, { state: "pausing", error, waitS });
      if (!(await waited(waitS, stopped))) return change(row.id, { state: "waiting" });
      change(row.id, { state: "sending", sent: 0, error: null });
    }
  }
}

/** False when it was stopped meanwhile. The network's return ends the wait. */
function waited(seconds: number, stopped: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve(!stopped.aborted);
    };
    const timer = setTimeout(end, 1000 * seconds);
    addEventListener("online", end);
    stopped.addEventListener("abort", end);
  });
}
