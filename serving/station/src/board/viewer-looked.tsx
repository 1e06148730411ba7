// What the network looked at for the chosen call or point, level by level; only where a person asks for it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { address } from "../api";
import { may } from "../session";
import type { Box } from "../types";
import { t } from "../words";
import { cropOf, subject } from "./layers";
import { grid, isLookedAt, LEVELS, report, squareAround, type Level } from "./state";

const PICTURE_PX = 150;
/** Side of what is shown, px of the board: what the windows of each level reach; the 32 px level sees all. */
const REACH_PX: Record<Level, number> = { "4": 96, "16": 400, "32": Infinity };
const HEADS_PX = 1400;

export function LookedAt({ box }: { box: Box }) {
  const large = useSignal<Level | null>(null);
  if (!isLookedAt.value) {
    return (
      <button type="button" class="ask" onClick={() => (isLookedAt.value = true)}>
        <span>{t("board.looked.ask")}</span>
        <kbd aria-hidden="true">A</kbd>
      </button>
    );
  }
  return (
    <div class="crops looked" role="group" aria-label={t("board.looked")}>
      {LEVELS.map((level) => (
        <LevelPicture key={level} level={level} box={box} onLarge={() => (large.value = level)} />
      ))}
      {large.value && <Heads level={large.value} box={box} onClose={() => (large.value = null)} />}
    </div>
  );
}

function around(box: Box, level: Level): Box {
  const whole = grid.value!;
  return squareAround(box, Math.min(REACH_PX[level], Math.max(whole.width, whole.height)), whole);
}

function LevelPicture({ level, box, onLarge }: { level: Level; box: Box; onLarge: () => void }) {
  const shown = around(box, level);
  const state = useSignal<"computing" | "here" | "failed">("computing");
  const name = t("board.looked.level", { level });
  const [left, top, right, bottom] = shown;
  return (
    <figure>
      <div class="stacked" aria-busy={state.value === "computing"}>
        <img src={cropOf("image", shown, PICTURE_PX)} alt="" />
        <img
          src={cropOf(`attention_${level}`, shown, PICTURE_PX)}
          alt={name}
          onLoad={() => (state.value = "here")}
          onError={() => (state.value = "failed")}
        />
        <svg viewBox={`${left} ${top} ${right - left} ${bottom - top}`} aria-hidden="true">
          <rect x={box[0]} y={box[1]} width={box[2] - box[0]} height={box[3] - box[1]} />
        </svg>
        {state.value !== "here" && (
          <p role="status">{t(state.value === "failed" ? "board.looked.failed" : "board.computing")}</p>
        )}
      </div>
      <figcaption>
        {name}
        {may("engineer") && (
          <button type="button" class="link" onClick={onLarge}>
            {t("board.looked.heads")}
          </button>
        )}
      </figcaption>
    </figure>
  );
}

/** All heads of a level side by side, and their mean. */
function Heads({ level, box, onClose }: { level: Level; box: Box; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const shown = around(box, level);
  const side = Math.max(shown[2] - shown[0], shown[3] - shown[1]);
  const source = address(report.value?.links.attention ?? "", {
    level,
    head: "all",
    crop: shown.join(","),
    scale: Math.min(Math.max(HEADS_PX / 3 / side, 0.1), 8).toFixed(2),
    ...subject(),
  });
  return (
    <dialog ref={dialog} class="heads" aria-label={t("board.looked.level", { level })} onClose={onClose}>
      <h2>{t("board.looked.level", { level })}</h2>
      <p class="muted">{t("board.looked.heads.words")}</p>
      <img src={source} alt={t("board.looked.heads.words")} />
      <form method="dialog">
        <button type="submit">{t("shell.close")}</button>
      </form>
    </dialog>
  );
}
