// Why something was not done, as the service says it: what is wrong, and under it what to do.

import type { ApiError } from "./api-error";
import { told } from "./words";

export function Refusal({ error }: { error: ApiError }) {
  return (
    <div class="refused" role="alert">
      <p>{sentence(told(error.message))}</p>
      {error.hint && <p class="muted">{sentence(told(error.hint))}</p>}
    </div>
  );
}

/** The service's words begin small and end open. */
export function sentence(words: string): string {
  const isEnded = /[.?!\u3002\uff1f\uff01]$/.test(words);
  if (/[\u4e00-\u9fff]/.test(words)) return isEnded ? words : `${words}\u3002`;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${isEnded ? "" : "."}`;
}
