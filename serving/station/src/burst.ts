// Tells a barcode scanner from a person by its pace. Nothing here knows of the page: keys go in, orders come out.
//
// A scanner types a serial and Enter within some 50 ms. So a key that could be the first of a scan waits BURST_MS
// before it does its work; what came faster together and ends with Enter is a scan, and does nothing else.

export const BURST_MS = 45;
/** Two keys may follow so fast by two fingers of one hand; no person types three. */
const MOST_BY_HAND = 2;
const LEAST_SCAN = 2;

export interface Orders {
  scan: (serial: string) => void;
  /** The first key of what may become a scan, before its character stands anywhere. */
  begin: () => void;
}

export interface Burst {
  /**
   * A key that types `char` went down at `at` ms. `run` is what it does when it comes from a person; null: it
   * only writes. Returns true where it follows another faster than a person types.
   */
  type: (char: string, at: number, run: (() => void) | null) => boolean;
  /** Enter went down. True: it ended a scan, and must do nothing else. Otherwise what waited has been done. */
  enter: (at: number) => boolean;
  /** Another key went down: do what waits first, so that orders keep their order. */
  other: () => void;
}

export function watchBursts({ scan, begin }: Orders): Burst {
  let typed = "";
  let lastAt = -Infinity;
  let waiting: (() => void)[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function settle(): void {
    clearTimeout(timer);
    const orders = typed.length <= MOST_BY_HAND ? waiting : [];
    waiting = [];
    for (const run of orders) run();
  }

  return {
    type(char, at, run) {
      const isFast = at - lastAt < BURST_MS;
      if (isFast) {
        typed += char;
      } else {
        settle();
        typed = char;
        begin();
      }
      lastAt = at;
      if (run) waiting.push(run);
      clearTimeout(timer);
      timer = setTimeout(settle, BURST_MS);
      return isFast;
    },
    enter(at) {
      const serial = typed;
      const isScan = at - lastAt < BURST_MS && serial.length >= LEAST_SCAN;
      if (isScan) waiting = [];
      settle();
      typed = "";
      if (isScan) scan(serial);
      return isScan;
    },
    other() {
      settle();
      typed = "";
    },
  };
}
