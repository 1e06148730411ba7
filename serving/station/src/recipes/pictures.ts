// Golden references as the browser can show them: they may be TIFF, and of hundreds of megapixels.

import type { Reference } from "./wire";

export const SMALL_PX = 240;
/** On the stage: sharp enough to draw on, small enough to be decoded at once. */
export const STAGE_PX = 4096;

export function shownAt({ picture }: Reference, longest: number): string {
  return `${picture}&longest=${longest}`;
}
