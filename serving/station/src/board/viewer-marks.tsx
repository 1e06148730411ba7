// Boxes of the calls, what was drawn, and the clicked point, over the board. Line and number tell them apart, not
// colour. Shapes are in px of the screen, so that a small box keeps a size that can be seen.

import { useComputed, useSignalEffect, type ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Box, Defect, Missed, Word } from "../types";
import type { Shape } from "./draw";
import { missedAt } from "./escape";
import { review, wordOf } from "./review";
import { call, drawn, point, report, selected } from "./state";
import type { View } from "./viewer";

const LEAST_PX = 14;
/** Between a call and its mark, so that the mark hides nothing of it. */
const GAP_PX = 3;
const CORNER_PX = 9;
/** Of a class on the board; the list beside it has all of its name. */
const MOST_CHARS = 32;

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Of a call on the screen, from the board's corner. */
function screenRect([left, top, right, bottom]: Box, scale: number): Rect {
  const width = Math.max((right - left) * scale + 2 * GAP_PX, LEAST_PX);
  const height = Math.max((bottom - top) * scale + 2 * GAP_PX, LEAST_PX);
  return { x: ((left + right) * scale - width) / 2, y: ((top + bottom) * scale - height) / 2, width, height };
}

/** The smallest call whose mark is under a point of the board. */
export function hitCall(x: number, y: number, scale: number): number | null {
  const hits = (report.value?.defects ?? [])
    .map((defect) => ({ id: defect.id, rect: screenRect(defect.box_xyxy, scale) }))
    .filter(({ rect }) => {
      const [across, down] = [x * scale - rect.x, y * scale - rect.y];
      return across >= 0 && down >= 0 && across <= rect.width && down <= rect.height;
    })
    .sort((one, other) => one.rect.width * one.rect.height - other.rect.width * other.rect.height);
  return hits[0]?.id ?? null;
}

/** isSecond: on the reference beside the board, where only the chosen place is marked. */
export function Marks({ view, isSecond = false }: { view: ReadonlySignal<View>; isSecond?: boolean }) {
  const group = useRef<SVGGElement>(null);
  const scale = useComputed(() => view.value.scale);
  useSignalEffect(() => {
    const { x, y } = view.value;
    group.current?.setAttribute("transform", `translate(${x} ${y})`);
  });
  const chosen = call.value;
  return (
    <svg class={isSecond ? "marks second" : "marks"} aria-hidden="true">
      <g ref={group}>
        {!isSecond && <Differences scale={scale.value} />}
        {!isSecond &&
          report.value?.defects
            .filter((defect) => defect.id !== selected.value)
            .map((defect) => <CallMark key={defect.id} defect={defect} scale={scale.value} />)}
        {chosen && <Chosen defect={chosen} scale={scale.value} />}
        {!isSecond &&
          review.value?.missed.map((missed, index) => (
            <Drawn key={index} shape={missed} scale={scale.value} isChosen={index === missedAt.value} />
          ))}
        {!isSecond && drawn.value && <Drawn shape={drawn.value} scale={scale.value} />}
        {point.value && <Point {...point.value} scale={scale.value} />}
      </g>
    </svg>
  );
}

function CallMark({ defect, scale }: { defect: Defect; scale: number }) {
  const rect = screenRect(defect.box_xyxy, scale);
  const word: Word | undefined = wordOf(defect.id)?.word;
  return (
    <g class="call" data-id={defect.id} data-word={word}>
      <rect class="halo" {...rect} rx="2" />
      <rect class="line" {...rect} rx="2" />
      <text x={rect.x} y={rect.y - 4}>
        {defect.id}
      </text>
    </g>
  );
}

/** Corners only: the eye should rest on the call, not on its frame. */
function Chosen({ defect, scale }: { defect: Defect; scale: number }) {
  const { x, y, width, height } = screenRect(defect.box_xyxy, scale);
  const reach = Math.min(CORNER_PX, width / 3, height / 3);
  const [right, bottom] = [x + width, y + height];
  const path = [
    `M${x} ${y + reach}V${y}H${x + reach}`,
    `M${right - reach} ${y}H${right}V${y + reach}`,
    `M${right} ${bottom - reach}V${bottom}H${right - reach}`,
    `M${x + reach} ${bottom}H${x}V${bottom - reach}`,
  ].join("");
  return (
    <g class="call selected" data-id={defect.id}>
      <path class="halo" d={path} />
      <path class="line" d={path} />
      <text x={x} y={y - 5}>
        {defect.id}
      </text>
    </g>
  );
}

/** Large areas that do not look like the reference and that no class names. */
function Differences({ scale }: { scale: number }) {
  return (
    <>
      {report.value?.differences.map((box, index) => (
        <rect key={index} class="difference" {...screenRect(box, scale)} />
      ))}
    </>
  );
}

/** Without a class: it is still asked for. */
function Drawn({ shape, scale, isChosen = false }: { shape: Shape & Partial<Missed>; scale: number; isChosen?: boolean }) {
  const { box_xyxy: box, polygon, label = "?" } = shape;
  const points = polygon ?? (box ? corners(box) : []);
  const text = points.map(([x, y]) => `${x * scale},${y * scale}`).join(" ");
  const [x, y] = points.reduce((one, other) => (other[1] < one[1] ? other : one), points[0] ?? [0, 0]);
  return (
    <g class={isChosen ? "missed chosen" : "missed"}>
      <polygon class="halo" points={text} />
      <polygon class="line" points={text} />
      <text x={x * scale} y={y * scale - 5}>
        {shortened(label)}
      </text>
    </g>
  );
}

function corners([left, top, right, bottom]: Box): [number, number][] {
  return [
    [left, top],
    [right, top],
    [right, bottom],
    [left, bottom],
  ];
}

function Point({ x, y, scale }: { x: number; y: number; scale: number }) {
  const path = `M${x * scale - 11} ${y * scale}h7m8 0h7M${x * scale} ${y * scale - 11}v7m0 8v7`;
  return (
    <g class="point">
      <path class="halo" d={path} />
      <path class="line" d={path} />
    </g>
  );
}

function shortened(label: string): string {
  if (label.length <= MOST_CHARS) return label;
  return `${label.slice(0, MOST_CHARS - 1)}\u2026`;
}
