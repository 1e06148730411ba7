// The surface that is drawn on: by mouse, pen or finger, or with a cross-hair that the arrow keys move.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { nameKeys } from "../keys";
import { notify } from "../notices";
import { t } from "../words";
import { boxOf, MOST_CORNERS, polygonOf, within, type Corner, type Shape } from "./draw";
import { drawn, grid, stage, tool, view } from "./state";

/** The cross-hair's step, px of the screen. */
const STEP_PX = 6;
const DRAG_FROM_PX = 4;
/** So near to its last corner (a double click) or its first, a click closes the polygon. */
const LAST_PX = 5;
const FIRST_PX = 10;
const WHEEL = 400;

export function DrawLayer() {
  const surface = useRef<SVGSVGElement>(null);
  const corners = useSignal<Corner[]>([]);
  const at = useSignal<Corner | null>(null);
  const isPressed = useRef(false);
  const isMovedByKeys = useRef(false);
  const isBox = tool.value === "box";

  const boardPoint = (x: number, y: number): Corner => {
    const { scale, x: left, y: top } = view.value;
    return within([(x - left) / scale, (y - top) / scale], grid.value!);
  };
  const onScreen = ([x, y]: Corner): Corner => {
    const { scale, x: left, y: top } = view.value;
    return [x * scale + left, y * scale + top];
  };

  function finish(shape: Shape | null) {
    if (!shape) {
      notify(t("board.draw.small"));
      corners.value = [];
      return;
    }
    tool.value = "look";
    drawn.value = shape;
  }

  function place(corner: Corner) {
    const before = corners.value;
    const isNear = (other: Corner | undefined, px: number) =>
      !!other && distance(onScreen(other), onScreen(corner)) < px;
    const closes = isNear(before.at(-1), LAST_PX) || (before.length > 2 && isNear(before[0], FIRST_PX));
    if (isBox && before[0]) {
      finish(boxOf(before[0], corner));
    } else if (!isBox && closes) {
      finish(polygonOf(before));
    } else if (before.length < MOST_CORNERS) {
      corners.value = [...before, corner];
    }
  }

  /** Enter: a corner where the keys moved the cross-hair to; drawn by hand, the polygon is closed. */
  function enter() {
    if (isMovedByKeys.current) place(at.value!);
    else if (!isBox) finish(polygonOf(corners.value));
  }

  useEffect(() => {
    const bounds = surface.current!.getBoundingClientRect();
    const step = (across: number, down: number) => {
      const [x, y] = at.value ? onScreen(at.value) : [bounds.width / 2, bounds.height / 2];
      at.value = boardPoint(x + across * STEP_PX, y + down * STEP_PX);
      isMovedByKeys.current = true;
    };
    const words = t("board.key.cross");
    return nameKeys([
      { key: "escape", words: t("board.key.cancel"), run: () => (tool.value = "look") },
      { key: "enter", words: t(isBox ? "board.key.corner" : "board.key.close"), run: enter },
      { key: "backspace", words: t("board.key.back"), run: takeBack },
      { key: "arrowleft", words, run: () => step(-1, 0) },
      { key: "arrowright", words, run: () => step(1, 0) },
      { key: "arrowup", words, run: () => step(0, -1) },
      { key: "arrowdown", words, run: () => step(0, 1) },
    ]);
  }, []);

  function takeBack() {
    corners.value = corners.value.slice(0, -1);
  }

  function local(event: PointerEvent | MouseEvent): { x: number; y: number } {
    const { left, top } = surface.current!.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  function down(event: PointerEvent) {
    if (event.button !== 0 || !event.isPrimary) return;
    surface.current!.setPointerCapture(event.pointerId);
    const { x, y } = local(event);
    isPressed.current = true;
    isMovedByKeys.current = false;
    at.value = boardPoint(x, y);
    if (isBox && corners.value.length === 0) corners.value = [at.value];
  }

  function move(event: PointerEvent) {
    const { x, y } = local(event);
    isMovedByKeys.current = false;
    at.value = boardPoint(x, y);
  }

  function up(event: PointerEvent) {
    if (!isPressed.current) return;
    isPressed.current = false;
    const { x, y } = local(event);
    const from = corners.value[0];
    if (!isBox) place(boardPoint(x, y));
    else if (from && distance(onScreen(from), [x, y]) >= DRAG_FROM_PX) finish(boxOf(from, boardPoint(x, y)));
  }

  function wheel(event: WheelEvent) {
    event.preventDefault();
    stage.value?.zoom(Math.exp(-event.deltaY / WHEEL), local(event));
  }

  const shown = [...corners.value, ...(at.value ? [at.value] : [])].map(onScreen);
  return (
    <>
      <svg
        ref={surface}
        class="draw"
        aria-label={t(isBox ? "board.draw.box" : "board.draw.polygon")}
        role="application"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onWheel={wheel}
      >
        <Outline points={isBox && shown.length === 2 ? corners4(shown[0]!, shown[1]!) : shown} />
        {at.value && <Cross at={onScreen(at.value)} />}
      </svg>
      <p class="draw-help" role="status">
        {t(isBox ? "board.draw.box" : "board.draw.polygon")}
      </p>
    </>
  );
}

function Outline({ points }: { points: Corner[] }) {
  const text = points.map(([x, y]) => `${x},${y}`).join(" ");
  return (
    <g class="missed">
      <polygon class="halo" points={text} />
      <polygon class="line" points={text} />
    </g>
  );
}

function Cross({ at: [x, y] }: { at: Corner }) {
  return <path class="cross" d={`M0 ${y}H10000M${x} 0V10000`} />;
}

function distance([x, y]: Corner, [u, v]: Corner): number {
  return Math.hypot(x - u, y - v);
}

function corners4([x, y]: Corner, [u, v]: Corner): Corner[] {
  return [
    [x, y],
    [u, y],
    [u, v],
    [x, v],
  ];
}
