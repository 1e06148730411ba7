// The line between board and reference that one drags, or moves with the arrow keys.

import { useEffect, useRef } from "preact/hooks";
import { nameKeys } from "../keys";
import { t } from "../words";
import { divider } from "./state";

const STEP = 0.02;

export function Divider() {
  const line = useRef<HTMLDivElement>(null);
  const forgetKeys = useRef<() => void>(() => {});
  useEffect(() => () => forgetKeys.current(), []);

  function drag(event: PointerEvent) {
    if (!line.current?.hasPointerCapture(event.pointerId)) return;
    const { left, width } = line.current.parentElement!.getBoundingClientRect();
    moveTo((event.clientX - left) / width);
  }

  /** While it has the focus, the arrows are its own and do not pan. */
  function takeKeys() {
    const step = (key: string, by: number) => ({
      key,
      words: t("board.divider"),
      run: () => moveTo(divider.value + by),
      repeats: true,
    });
    forgetKeys.current = nameKeys([step("arrowleft", -STEP), step("arrowright", STEP)]);
  }

  return (
    <div
      ref={line}
      class="divider"
      role="separator"
      aria-label={t("board.divider")}
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(100 * divider.value)}
      tabIndex={0}
      style={{ left: `${100 * divider.value}%` }}
      onPointerDown={(event) => line.current?.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onFocus={takeKeys}
      onBlur={() => forgetKeys.current()}
    />
  );
}

function moveTo(share: number): void {
  divider.value = Math.min(Math.max(share, 0.02), 0.98);
}
