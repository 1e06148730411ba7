// An answer of the service that a page shows: asked for again when its address changes, the old one kept meanwhile.

import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { session } from "../session";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
}

/** `address` null asks for nothing; another `turn` asks again. */
export function useLoaded<T>(address: string | null, turn = 0): Loaded<T> {
  const isIn = session.value.state === "in";
  const [state, setState] = useState<Loaded<T>>({ data: null, error: null, isLoading: address !== null });
  useEffect(() => {
    if (address === null) {
      setState({ data: null, error: null, isLoading: false });
      return undefined;
    }
    if (!isIn) return undefined; // asked for when they are back
    const stop = new AbortController();
    setState((old) => ({ ...old, isLoading: true }));
    request<T>(address, { signal: stop.signal }).then(
      (data) => setState({ data, error: null, isLoading: false }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        // Figures of another span must not stand under this one's name.
        setState({ data: null, error, isLoading: false });
      },
    );
    return () => stop.abort();
  }, [address, turn, isIn]);
  return state;
}
