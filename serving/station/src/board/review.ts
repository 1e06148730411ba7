// What a person says of the open board, kept on this machine until the server has it.
//
// Interface for the viewer and the panel; the outbox behind it sends, repeats after a network loss, and stops at a
// conflict.

import { signal } from "@preact/signals";
import type { CallWord, Disposition, Missed, Review, Word } from "../types";

/** The document as it stands here, with what is not sent yet; null while none is open. */
export const review = signal<Review | null>(null);

export function wordOf(defect: number): CallWord | undefined {
  return review.value?.calls.find((call) => call.defect === defect);
}

export declare function openReview(inspection: string): Promise<void>;
export declare function setWord(defect: number, word: Word | null, label: string): void;
export declare function addMissed(missed: Missed): void;
export declare function removeMissed(index: number): void;
export declare function setDisposition(disposition: Disposition | null): void;
export declare function setChecked(checked: boolean): void;
export declare function undo(): void;
