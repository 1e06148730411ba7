// What keys do on the stage.

import type { Action } from "../keys";
import { t } from "../words";
import { missedAt } from "./escape";
import {
  areBoxesShown,
  chooseMode,
  chooseOverlay,
  hasReference,
  isBare,
  isBlinkPaused,
  isLookedAt,
  MODES,
  mode,
  opacity,
  overlay,
  point,
  stage,
  tool,
  type Overlay,
} from "./state";

export const ZOOM = 1.5;
const PAN_SHARE = 0.2;
const OPACITY_STEP = 0.1;
const ATTENTION: Overlay[] = ["attention_4", "attention_16", "attention_32"];

export function stageActions(): Action[] {
  const pan = (key: string, across: number, down: number): Action => ({
    key,
    words: t("board.key.pan"),
    run: () => stage.value?.pan(across * PAN_SHARE, down * PAN_SHARE),
    repeats: true,
  });
  return [
    { key: "v", words: t("board.key.mode"), run: nextMode },
    { key: "b", words: t("board.key.blink"), run: toggleBlink },
    { key: "m", words: t("board.key.map"), run: () => toggle("defect_map") },
    { key: "t", words: t("board.key.attention"), run: nextAttention },
    { key: "s", words: t("board.key.gate"), run: () => toggle("gate") },
    { key: "a", words: t("board.key.looked"), run: () => (isLookedAt.value = !isLookedAt.value) },
    { key: "[", words: t("board.key.less"), run: () => setOpacity(opacity.value - OPACITY_STEP) },
    { key: "]", words: t("board.key.more"), run: () => setOpacity(opacity.value + OPACITY_STEP) },
    { key: "h", words: t("board.key.boxes"), run: () => (areBoxesShown.value = !areBoxesShown.value) },
    {
      key: " ",
      words: t("board.key.bare"),
      run: () => (isBare.value = true),
      release: () => (isBare.value = false),
    },
    { key: "d", words: t("board.key.box"), run: () => (tool.value = "box") },
    { key: "g", words: t("board.key.polygon"), run: () => (tool.value = "polygon") },
    { key: "escape", words: t("board.key.escape"), run: () => (point.value = missedAt.value = null) },
    { key: "+", words: t("board.key.in"), run: () => stage.value?.zoom(ZOOM), repeats: true },
    { key: "=", words: t("board.key.in"), run: () => stage.value?.zoom(ZOOM), repeats: true },
    { key: "-", words: t("board.key.out"), run: () => stage.value?.zoom(1 / ZOOM), repeats: true },
    { key: "0", words: t("board.key.fit"), run: () => stage.value?.fit() },
    { key: "home", words: t("board.key.fit"), run: () => stage.value?.fit() },
    pan("arrowleft", -1, 0),
    pan("arrowright", 1, 0),
    pan("arrowup", 0, -1),
    pan("arrowdown", 0, 1),
  ];
}

function setOpacity(share: number): void {
  opacity.value = Math.min(Math.max(share, 0.1), 1);
}

function nextMode(): void {
  if (!hasReference.value) return;
  chooseMode(MODES[(MODES.indexOf(mode.value) + 1) % MODES.length]!);
}

function toggleBlink(): void {
  if (mode.value !== "blink") {
    chooseMode("blink");
    isBlinkPaused.value = false;
  } else isBlinkPaused.value = !isBlinkPaused.value;
}

function toggle(wanted: Overlay): void {
  chooseOverlay(overlay.value === wanted ? null : wanted);
}

/** 4, 16, 32 px, none. */
function nextAttention(): void {
  const at = overlay.value ? ATTENTION.indexOf(overlay.value) : -1;
  chooseOverlay(ATTENTION[at + 1] ?? null);
}
