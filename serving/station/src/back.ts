// When somebody comes back: logs in again after their session ended in front of an open page.

import { useEffect, useRef } from "preact/hooks";
import { session } from "./session";

/** Run what failed without a session once more, so that no page shows a refusal that no longer holds. */
export function useBack(run: () => void): void {
  const isIn = session.value.state === "in";
  const wasIn = useRef(isIn);
  useEffect(() => {
    if (isIn && !wasIn.current) run();
    wasIn.current = isIn;
  }, [isIn]);
}
