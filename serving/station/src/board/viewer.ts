// A deep-zoom view of one inspection's pictures: tiles of the service, laid over each other in slots.

import OpenSeadragon from "openseadragon";
import type { Box } from "../types";

/** What tiles there are of a board; every layer of an inspection has the same. */
export interface Grid {
  width: number;
  height: number;
  tile_px: number;
  max_level: number;
}

/** A layer's tiles: PATH/LEVEL/COLUMN_ROW?QUERY. */
export interface Tiles {
  path: string;
  query: string;
  /** Whether one sees through it. */
  isClear: boolean;
}

/** Where the board lies on the screen: CSS px per px of the board, and its upper left corner. */
export interface View {
  scale: number;
  x: number;
  y: number;
}

export interface Listener {
  onView(view: View): void;
  /** A click, px of the board. */
  onClick(x: number, y: number): void;
  onLoading(slot: string, isLoading: boolean): void;
  onFailure(slot: string, url: string): void;
}

interface Slot {
  tiles: Tiles;
  opacity: number;
  item: OpenSeadragon.TiledImage | null;
}

const MOST_ENLARGED = 32;
/** From here on a pixel of the board is shown as a square. */
const PIXELATED_FROM = 2;
/** Share of the stage's shorter side that a call fills when it is gone to. */
const FOCUS_SHARE = 0.24;
const FOCUS_MOST = 14;
const FIT_SHARE = 0.96;
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class TileViewer {
  private readonly osd: OpenSeadragon.Viewer;
  private readonly slots = new Map<string, Slot>();
  private readonly touched: (() => void)[] = [];
  private waiting: (() => void) | null = null;
  private isReady = false;

  constructor(
    element: HTMLElement,
    readonly grid: Grid,
    private readonly listener: Listener,
  ) {
    keepStylesOut();
    keepQuiet();
    const gestures = { clickToZoom: false, dblClickToZoom: false, flickEnabled: true };
    this.osd = OpenSeadragon({
      element,
      drawer: "canvas",
      tabIndex: -1,
      showNavigationControl: false,
      keyboardNavEnabled: false,
      preserveViewport: true,
      autoResize: true,
      animationTime: reducedMotion.matches ? 0 : 0.35,
      springStiffness: 9,
      zoomPerScroll: 1.25,
      minZoomImageRatio: 0.5,
      maxZoomPixelRatio: MOST_ENLARGED,
      visibilityRatio: 0.25,
      minPixelRatio: 0.6,
      // Edges of tiles lie on whole px, so enlarged ones need no second canvas to be joined on.
      smoothTileEdgesMinZoom: Infinity,
      // Else a line shows where two tiles that one can see through meet.
      subPixelRoundingForTransparency: { "*": OpenSeadragon.SUBPIXEL_ROUNDING_OCCURRENCES.ALWAYS },
      imageLoaderLimit: 6,
      maxImageCacheCount: 400,
      tileRetryMax: 1,
      gestureSettingsMouse: gestures,
      gestureSettingsTouch: { ...gestures, pinchToZoom: true },
      gestureSettingsPen: gestures,
      silenceMultiImageWarnings: true,
    });
    this.osd.addHandler("update-viewport", () => this.tellView());
    this.osd.addHandler("resize", () => this.tellView());
    this.osd.addHandler("canvas-click", (event) => {
      if (!event.quick) return;
      const { scale, x, y } = this.view();
      listener.onClick((event.position.x - x) / scale, (event.position.y - y) / scale);
    });
    this.osd.addHandler("tile-load-failed", (event) => {
      const failed = [...this.slots].find(([, slot]) => slot.item === event.tiledImage);
      if (failed) listener.onFailure(failed[0], event.tile.getUrl());
    });
  }

  destroy(): void {
    this.slots.clear();
    this.osd.destroy();
  }

  /** Lay a layer into a slot; slots lie over each other in the order in which they were first filled. */
  setLayer(name: string, tiles: Tiles | null, opacity = 1): void {
    const old = this.slots.get(name);
    if (old && tiles && old.tiles.path === tiles.path && old.tiles.query === tiles.query) {
      this.setOpacity(name, opacity);
      return;
    }
    if (old) {
      this.slots.delete(name);
      if (old.item) this.osd.world.removeItem(old.item);
      this.listener.onLoading(name, false);
    }
    if (!tiles) return;
    const slot: Slot = { tiles, opacity, item: null };
    this.slots.set(name, slot);
    this.listener.onLoading(name, true);
    this.osd.addTiledImage({
      tileSource: tileSource(this.grid, tiles),
      opacity,
      success: (event: Event | { item: OpenSeadragon.TiledImage }) => {
        if (!("item" in event)) return;
        const { item } = event;
        if (this.slots.get(name) !== slot) {
          this.osd.world.removeItem(item);
          return;
        }
        slot.item = item;
        item.setOpacity(slot.opacity);
        item.addHandler("fully-loaded-change", ({ fullyLoaded }) => {
          if (this.slots.get(name) === slot) this.listener.onLoading(name, !fullyLoaded);
        });
        this.ready();
      },
    } as OpenSeadragon.TileSourceSpecifier);
  }

  setOpacity(name: string, opacity: number): void {
    const slot = this.slots.get(name);
    if (!slot) return;
    slot.opacity = opacity;
    slot.item?.setOpacity(opacity);
  }

  view(): View {
    const corner = this.osd.viewport.pixelFromPoint(new OpenSeadragon.Point(0, 0), true);
    const wide = this.osd.viewport.getContainerSize().x * this.osd.viewport.getZoom(true);
    return { scale: wide / this.grid.width, x: corner.x, y: corner.y };
  }

  /** All of the board. */
  fit(immediately = false): void {
    const { width, height } = this.grid;
    this.moveTo(width / 2, height / 2, this.fitScale(), immediately);
  }

  /** The middle of a box, large enough to be judged, with its surroundings. */
  focus([left, top, right, bottom]: Box, immediately = false): void {
    this.whenReady(() => {
      const { x, y } = this.osd.viewport.getContainerSize();
      const wanted = (FOCUS_SHARE * Math.min(x, y)) / Math.max(right - left, bottom - top, 1);
      const scale = Math.max(Math.min(wanted, FOCUS_MOST), this.fitScale());
      this.moveTo((left + right) / 2, (top + bottom) / 2, scale, immediately);
    });
  }

  zoom(factor: number, at?: { x: number; y: number }): void {
    this.touch();
    const around = at && this.osd.viewport.pointFromPixel(new OpenSeadragon.Point(at.x, at.y), true);
    this.osd.viewport.zoomBy(factor, around);
    this.osd.viewport.applyConstraints();
  }

  /** By shares of the stage. */
  pan(across: number, down: number): void {
    this.touch();
    const { width, height } = this.osd.viewport.getBounds();
    this.osd.viewport.panBy(new OpenSeadragon.Point(across * width, down * height));
    this.osd.viewport.applyConstraints();
  }

  /** Of the stage, CSS px. */
  size(): { x: number; y: number } {
    return this.osd.viewport.getContainerSize();
  }

  /** Bring a point of the board into the middle. */
  goTo(x: number, y: number): void {
    this.touch();
    this.osd.viewport.panTo(new OpenSeadragon.Point(x / this.grid.width, y / this.grid.width));
  }

  /** Show what another view shows. */
  follow(other: TileViewer): void {
    this.whenReady(() => {
      const { osd } = other;
      this.osd.viewport.zoomTo(osd.viewport.getZoom(true), undefined, true);
      this.osd.viewport.panTo(osd.viewport.getCenter(true), true);
    });
  }

  /** Called when a person moves this view, by hand or by key; not when it follows another. */
  onTouched(listener: () => void): void {
    this.touched.push(listener);
    for (const name of ["canvas-press", "canvas-scroll", "canvas-pinch"] as const) {
      this.osd.addHandler(name, listener);
    }
  }

  private touch(): void {
    for (const listener of this.touched) listener();
  }

  private fitScale(): number {
    const { x, y } = this.osd.viewport.getContainerSize();
    return Math.min(x / this.grid.width, y / this.grid.height) * FIT_SHARE;
  }

  private moveTo(x: number, y: number, scale: number, immediately: boolean): void {
    this.touch();
    this.whenReady(() => {
      const { viewport } = this.osd;
      const { width } = this.grid;
      viewport.zoomTo((scale * width) / viewport.getContainerSize().x, undefined, immediately);
      viewport.panTo(new OpenSeadragon.Point(x / width, y / width), immediately);
      if (immediately) this.tellView();
    });
  }

  private whenReady(move: () => void): void {
    if (this.isReady) move();
    else this.waiting = move;
  }

  private ready(): void {
    if (this.isReady) return;
    this.isReady = true;
    this.waiting?.();
    this.waiting = null;
    this.tellView();
  }

  private tellView(): void {
    const view = this.view();
    this.osd.drawer.setImageSmoothingEnabled(view.scale < PIXELATED_FROM);
    this.listener.onView(view);
  }
}

function tileSource({ width, height, tile_px, max_level }: Grid, { path, query, isClear }: Tiles) {
  return {
    width,
    height,
    tileSize: tile_px,
    minLevel: 0,
    maxLevel: max_level,
    hasTransparency: () => isClear,
    getTileUrl: (level: number, column: number, row: number) => `${path}/${level}/${column}_${row}${query}`,
  };
}

/**
 * The library puts a style element into the page unless one is there, and the page's policy allows none. The
 * library looks for it by name and attribute; in a namespace of its own it styles nothing and is not refused.
 */
function keepStylesOut(): void {
  const mark = "data-openseadragon-mobile-css";
  if (document.querySelector(`style[${mark}]`)) return;
  const decoy = document.createElementNS("urn:station", "style");
  decoy.setAttribute(mark, "true");
  document.head.append(decoy);
}

/** The library logs tiles that come late, which is no fault, and tiles that fail, which is told in words. */
function keepQuiet(): void {
  const silent = () => {};
  Object.assign(OpenSeadragon, { console: { ...console, warn: silent, error: silent } });
}
