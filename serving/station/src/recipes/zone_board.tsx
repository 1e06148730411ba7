// The golden reference with its zones, as an SVG that one can draw on.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../words";
import { draft } from "./draft";
import { crossesItself } from "./geometry";
import { shownAt, STAGE_PX } from "./pictures";
import type { Point, Reference, Zone } from "./wire";
import { closePolygon, down, move, moving, pointer, stopGesture, up } from "./zone_hand";
import {
  addZone,
  cancelDrawing,
  chooseNext,
  chosen,
  chosenZone,
  corner,
  drawing,
  inDrawingOrder,
  kind,
  nudge,
  removeChosen,
  tool,
  zoneFault,
  type Kind,
} from "./zone_state";
import { pan, picture, scale, stage, toPicture, viewBox, zoom } from "./zone_view";

const STEP_PX = 60;
const ARROWS: Record<string, Point> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function ZoneBoard({ reference, mayDraw }: { reference: Reference; mayDraw: boolean }) {
  const svg = useRef<SVGSVGElement>(null);
  const isBroken = useSignal(false);
  useEffect(() => {
    picture.value = { width: reference.width, height: reference.height };
    isBroken.value = false;
  }, [reference.sha256]);
  useEffect(() => {
    const element = svg.current!;
    const watch = new ResizeObserver(() => (stage.value = { width: element.clientWidth, height: element.clientHeight }));
    watch.observe(element);
    const wheel = (event: WheelEvent) => {
      event.preventDefault(); // Preact's listeners are passive for wheels
      const box = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 400), toPicture(event.clientX - box.left, event.clientY - box.top));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      watch.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, []);
  return (
    <div class="zone-stage">
      <svg
        ref={svg}
        tabindex={0} // in SVG the attribute has this spelling alone
        role="application"
        aria-label={t("recipes.zones.stage", { name: reference.name })}
        data-tool={mayDraw ? tool.value : "select"}
        viewBox={viewBox.value.join(" ")}
        onPointerDown={(event) => down(event, mayDraw)}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={stopGesture}
        onPointerLeave={() => (pointer.value = null)}
        onDblClick={() => tool.value === "polygon" && drawing.value.length > 2 && closePolygon()}
        onKeyDown={(event) => mayDraw && onKey(event)}
      >
        <image
          key={reference.sha256}
          href={shownAt(reference, STAGE_PX)}
          width={reference.width}
          height={reference.height}
          data-sharp={scale.value > 2}
          onError={() => (isBroken.value = true)}
        />
        <Zones kind="regions" />
        <Zones kind="ignore" />
        <Chosen mayDraw={mayDraw} />
        <Drawing />
      </svg>
      {isBroken.value && <p class="stage-note">{t("recipes.reference.unshown")}</p>}
    </div>
  );
}

function onKey(event: KeyboardEvent): void {
  const arrow = ARROWS[event.key];
  if (arrow) {
    const by = event.shiftKey ? 10 : 1;
    if (chosenZone.value) nudge(arrow[0] * by, arrow[1] * by);
    else pan(-arrow[0] * STEP_PX, -arrow[1] * STEP_PX);
  } else if (event.key === "Enter" && drawing.value.length) closePolygon();
  else if (event.key === "Enter" && tool.value !== "select") addZone(inTheMiddle());
  else if (event.key === "Escape") cancelDrawing();
  else if (event.key === "Backspace" && drawing.value.length) drawing.value = drawing.value.slice(0, -1);
  else if (event.key === "Delete" || event.key === "Backspace") removeChosen();
  else if (event.key === "PageDown" || event.key === "PageUp") chooseNext(event.key === "PageDown" ? 1 : -1);
  else return;
  event.preventDefault();
}

/** For those who draw without a pointer: a zone to be moved with the arrows and cut to size in the list. */
function inTheMiddle(): Point[] {
  const [left, top, width, height] = viewBox.value as [number, number, number, number];
  const [x, y, w, h] = [left + 0.4 * width, top + 0.4 * height, 0.2 * width, 0.2 * height].map(Math.round) as number[];
  return [
    [x!, y!],
    [x! + w!, y!],
    [x! + w!, y! + h!],
    [x!, y! + h!],
  ];
}

function Zones({ kind: of }: { kind: Kind }) {
  return (
    <g class={`zones ${of}`}>
      {inDrawingOrder(draft.value[of]).map(({ zone, index }) => {
        const isChosen = chosen.value?.kind === of && chosen.value.index === index;
        return <ZoneShape key={index} kind={of} zone={zone} index={index} isChosen={isChosen} />;
      })}
    </g>
  );
}

function ZoneShape({ kind: of, zone, index, isChosen }: { kind: Kind; zone: Zone; index: number; isChosen: boolean }) {
  const polygon = isChosen && moving.value ? moving.value : zone.polygon;
  const isBad = polygon === zone.polygon ? zoneFault(zone) !== null : crossesItself(polygon);
  const [x, y] = polygon.reduce(([left, top], [px, py]) => [Math.min(left, px), Math.min(top, py)]);
  return (
    <g data-zone={index} data-kind={of} data-chosen={isChosen} data-bad={isBad}>
      <polygon class="casing" points={polygon.join(" ")} />
      <polygon points={polygon.join(" ")} />
      {zone.name && (
        <text x={x} y={y - 5 / scale.value} font-size={12 / scale.value} stroke-width={3 / scale.value}>
          {zone.name}
        </text>
      )}
    </g>
  );
}

/** Handles of the chosen zone: its corners, and the middle of each side, which makes a new corner. */
function Chosen({ mayDraw }: { mayDraw: boolean }) {
  const zone = chosenZone.value;
  if (!zone || !mayDraw) return null;
  const polygon = moving.value ?? zone.polygon;
  const size = 9 / scale.value;
  return (
    <g class="handles">
      {!moving.value &&
        polygon.map(([x, y], index) => {
          const [nextX, nextY] = polygon[(index + 1) % polygon.length]!;
          return <circle key={`side ${index}`} data-side={index} cx={(x + nextX) / 2} cy={(y + nextY) / 2} r={0.4 * size} />;
        })}
      {polygon.map(([x, y], index) => (
        <rect
          key={index}
          data-corner={index}
          data-chosen={corner.value === index}
          x={x - size / 2}
          y={y - size / 2}
          width={size}
          height={size}
        />
      ))}
    </g>
  );
}

function Drawing() {
  const points = drawing.value;
  if (!points.length) return null;
  const isPolygon = tool.value === "polygon";
  const shown = isPolygon && pointer.value ? [...points, pointer.value] : points;
  const isBad = isPolygon && points.length > 2 && crossesItself(points);
  return (
    <g class={`drawing ${kind.value}`} data-bad={isBad}>
      <polygon class="casing" points={shown.join(" ")} />
      <polygon points={shown.join(" ")} />
      {isPolygon && points.map(([x, y], index) => <circle key={index} cx={x} cy={y} r={4 / scale.value} />)}
    </g>
  );
}
