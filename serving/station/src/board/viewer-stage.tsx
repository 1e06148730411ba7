// The stage: the board with what lies over it, and its reference beside, over or in turn with it.

import { signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, call as ask } from "../api";
import { notifyError } from "../notices";
import { t } from "../words";
import { showsReference, startBlinking } from "./blink";
import { chooseMissed, hitMissed, missedAt } from "./escape";
import { DrawLayer } from "./draw-layer";
import { DrawLabel } from "./draw-label";
import { tilesOf } from "./layers";
import { LayersLegend } from "./layers-legend";
import {
  areBoxesShown,
  call,
  divider,
  drawn,
  forgetAttention,
  isBare,
  isSeen,
  opacity,
  overlay,
  point,
  referenceFault,
  report,
  selected,
  shownMode,
  stage,
  tool,
  view,
} from "./state";
import { hitCall, Marks } from "./viewer-marks";
import { PaneNames, StageControls } from "./viewer-controls";
import { Divider } from "./viewer-divider";
import { TileViewer, type Grid, type Listener } from "./viewer";

const loading = signal<ReadonlySet<string>>(new Set());

/** Which layer the second picture shows, if there is a second. */
function secondLayer(): "reference" | "difference" | null {
  if (shownMode.value === "board") return null;
  return shownMode.value === "difference" ? "difference" : "reference";
}

export function Stage({ grid }: { grid: Grid }) {
  const first = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const viewer = new TileViewer(first.current!, grid, {
      ...watch("first "),
      onView: (now) => (view.value = now),
      onClick: (x, y) => clicked(x, y, grid),
    });
    viewer.setLayer("board", tilesOf("image"));
    stage.value = viewer;
    const end = startBlinking();
    return () => {
      end();
      stage.value = null;
      loading.value = new Set();
      viewer.destroy();
    };
  }, [grid]);
  useSignalEffect(() => {
    const share = isBare.value ? 0 : opacity.value;
    stage.value?.setLayer("overlay", overlay.value && tilesOf(overlay.value), share);
  });
  useGoing();
  const areMarksShown = useComputed(() => areBoxesShown.value && !isBare.value);
  return (
    <div class="stage" data-mode={shownMode} role="group" aria-label={t("board.stage")}>
      <div class="pane first" ref={first} />
      {shownMode.value !== "board" && <Second grid={grid} />}
      {areMarksShown.value && <Marks view={view} />}
      {areMarksShown.value && shownMode.value === "side" && <Marks view={view} isSecond />}
      {shownMode.value === "swipe" && <Divider />}
      {tool.value !== "look" && <DrawLayer key={tool.value} />}
      {drawn.value && <DrawLabel />}
      <PaneNames />
      <StageControls />
      <LayersLegend />
      <p class="stage-note" role="status">
        {useComputed(() => (isWaiting("first overlay") ? t("board.computing") : ""))}
      </p>
    </div>
  );
}

/** The picture that covers the first, or stands beside it. */
function Second({ grid }: { grid: Grid }) {
  const element = useRef<HTMLDivElement>(null);
  const viewer = useSignal<TileViewer | null>(null);
  /** Which of the two a person moved last: the other follows. */
  const leader = useRef<"first" | "second">("first");
  useEffect(() => {
    leader.current = "first";
    const made = new TileViewer(element.current!, grid, {
      ...watch("second "),
      onView: () => leader.current === "second" && stage.value?.follow(made),
      onClick: (x, y) => clicked(x, y, grid),
    });
    viewer.value = made;
    made.onTouched(() => (leader.current = "second"));
    stage.value?.onTouched(() => (leader.current = "first"));
    return () => {
      viewer.value = null;
      made.destroy();
    };
  }, [grid]);
  useSignalEffect(() => {
    const layer = secondLayer();
    viewer.value?.setLayer("picture", layer && tilesOf(layer));
  });
  useSignalEffect(() => {
    const isMoved = view.value !== null;
    if (isMoved && stage.value && leader.current === "first") viewer.value?.follow(stage.value);
  });
  const style = useComputed(() => {
    if (isBare.value && shownMode.value !== "side") return { visibility: "hidden" };
    if (shownMode.value === "blink") return { visibility: showsReference.value ? "visible" : "hidden" };
    return shownMode.value === "swipe" ? { clipPath: `inset(0 0 0 ${100 * divider.value}%)` } : {};
  });
  return <div class="pane second" ref={element} style={style.value} />;
}

/** Go to the chosen call, or to all of the board. */
function useGoing(): void {
  const wasOpened = useRef(false);
  useSignalEffect(() => {
    const viewer = stage.value;
    const chosen = call.value;
    if (!viewer) return;
    const immediately = !wasOpened.current;
    wasOpened.current = true;
    if (chosen) viewer.focus(chosen.box_xyxy, immediately);
    else if (immediately) viewer.fit(true);
  });
  useSignalEffect(() => {
    if (selected.value === null) return;
    point.value = missedAt.value = null;
    forgetAttention();
  });
}

function clicked(x: number, y: number, { width, height }: Grid): void {
  const hit = areBoxesShown.value ? hitCall(x, y, view.value.scale) : null;
  if (hit !== null && hit === selected.value) {
    point.value = missedAt.value = null;
    stage.value?.focus(call.value!.box_xyxy);
  } else if (hit !== null) selected.value = hit;
  else if (x >= 0 && y >= 0 && x < width && y < height) clickedGround(x, y);
}

/** A drawn defect, or a place where nothing is marked. */
function clickedGround(x: number, y: number): void {
  const drawnThere = areBoxesShown.value ? hitMissed(x, y) : null;
  if (drawnThere !== null) chooseMissed(drawnThere);
  else {
    missedAt.value = null;
    point.value = { x, y };
  }
}

function isWaiting(name: string): boolean {
  return loading.value.has(name);
}

/** What a view tells of its layers; a failure is asked again for its reason in words. */
function watch(prefix: string): Pick<Listener, "onLoading" | "onFailure"> {
  let told = "";
  return {
    onLoading(slot, isLoading) {
      const next = new Set(loading.value);
      if (isLoading) next.add(prefix + slot);
      else next.delete(prefix + slot);
      loading.value = next;
      if (prefix + slot === "first board" && !isLoading) isSeen.value = true;
    },
    onFailure(slot, url) {
      this.onLoading(slot, false);
      const layer = `${report.value?.id} ${slot} ${url.split("/").at(-3)}`;
      if (layer === told) return;
      told = layer;
      if (slot === "overlay") overlay.value = null;
      ask(url).catch((error: unknown) => {
        const isGone = error instanceof ApiError && error.status >= 400 && error.status < 500;
        if (slot === "picture" && isGone) referenceFault.value = error.message;
        else notifyError(error);
      });
    },
  };
}
