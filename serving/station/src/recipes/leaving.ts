// A recipe with unsaved changes is not left without a word: not by a link, the back key, a scan, or closing the page.

import { signal } from "@preact/signals";
import { discard, isChanged, stored } from "./draft";
import { guardPlace, link } from "../route";

/** Where one was going when it turned out that something is unsaved. */
export const wantsTo = signal<string | null>(null);

/** For useEffect, while a recipe is open. */
export function guardLeaving(): () => void {
  const release = guardPlace(ask);
  addEventListener("beforeunload", warn);
  return () => {
    release();
    removeEventListener("beforeunload", warn);
  };
}

export function leave(): void {
  const wanted = wantsTo.value;
  wantsTo.value = null;
  discard();
  if (wanted !== null) location.hash = wanted;
}

function ask(wanted: string): boolean {
  const isSame = stored.value !== null && wanted.split("?")[0] === link("recipes", stored.value.name);
  if (isSame || !isChanged.value) return true;
  wantsTo.value = wanted;
  return false;
}

function warn(event: BeforeUnloadEvent): void {
  if (isChanged.value) event.preventDefault();
}
