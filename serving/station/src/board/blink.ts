// The blink comparator: board and reference take turns, so that what differs jumps.

import { computed, effect, signal } from "@preact/signals";
import { drawn, isBlinkPaused, shownMode, tool } from "./state";

/** Each picture this long: two turns a second, below the three flashes that can harm. */
const TURN_MS = 250;

const isReferenceTurn = signal(false);
/** Whoever draws needs the board to stand still. */
const isDrawing = computed(() => tool.value !== "look" || drawn.value !== null);
const isBlinking = computed(() => shownMode.value === "blink" && !isBlinkPaused.value && !isDrawing.value);
/** Whether the reference covers the board now. */
export const showsReference = computed(() => isBlinking.value && isReferenceTurn.value);

/** Keep time while the board page is open; returns what ends it. */
export function startBlinking(): () => void {
  return effect(() => {
    if (!isBlinking.value) return undefined;
    isReferenceTurn.value = false;
    const timer = setInterval(() => (isReferenceTurn.value = !isReferenceTurn.peek()), TURN_MS);
    return () => clearInterval(timer);
  });
}
