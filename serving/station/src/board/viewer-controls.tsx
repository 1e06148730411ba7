// What lies on the stage's edges: which picture is which, zoom, and where on the board one is.

import { useComputed } from "@preact/signals";
import { t } from "../words";
import { showsReference } from "./blink";
import { grid, isBlinkPaused, report, shownMode, stage, view } from "./state";
import { ZOOM } from "./viewer-keys";

const MAP_PX = 110;

export function PaneNames() {
  const board = <span class="pane-name first">{t("board.name.image")}</span>;
  const reference = <span class="pane-name second">{t("board.name.reference")}</span>;
  switch (shownMode.value) {
    case "board":
      return null;
    case "difference":
      return <span class="pane-name first">{t("board.name.difference")}</span>;
    case "blink":
      return <BlinkName />;
    default:
      return [board, reference];
  }
}

/** Changes with the pictures, and halts them; to who hears the page it is one button that does not change. */
function BlinkName() {
  return (
    <button
      type="button"
      class={showsReference.value ? "pane-name turn" : "pane-name"}
      aria-pressed={isBlinkPaused.value}
      aria-label={t("board.pause")}
      onClick={() => (isBlinkPaused.value = !isBlinkPaused.value)}
    >
      <span class="sign" aria-hidden="true">
        {isBlinkPaused.value ? "\u25b6" : "\u275a\u275a"}
      </span>
      <span aria-hidden="true">{t(showsReference.value ? "board.name.reference" : "board.name.image")}</span>
      <kbd aria-hidden="true">B</kbd>
    </button>
  );
}

export function StageControls() {
  return (
    <div class="stage-controls">
      <WhereMap />
      <div role="group" aria-label={t("board.zoom")}>
        <Tool name={t("board.key.in")} hint="+" sign="+" onUse={() => stage.value?.zoom(ZOOM)} />
        <Tool name={t("board.key.out")} hint="-" sign={"\u2212"} onUse={() => stage.value?.zoom(1 / ZOOM)} />
        <Tool name={t("board.key.fit")} hint="0" sign={"\u2922"} onUse={() => stage.value?.fit()} />
      </div>
    </div>
  );
}

function Tool({ name, hint, sign, onUse }: { name: string; hint: string; sign: string; onUse: () => void }) {
  return (
    <button type="button" aria-label={name} title={`${name} (${hint})`} onClick={onUse}>
      {sign}
    </button>
  );
}

/** The whole board, small, with the part that the stage shows; a click goes there. */
function WhereMap() {
  const { width, height } = grid.value!;
  const shown = useComputed(() => {
    const { scale, x, y } = view.value;
    const size = stage.value?.size() ?? { x: 0, y: 0 };
    return { x: -x / scale, y: -y / scale, width: size.x / scale, height: size.y / scale };
  });
  if (shown.value.width * shown.value.height > 0.5 * width * height) return null;
  const unit = Math.max(width, height) / MAP_PX;
  const style = { width: `${width / unit}px`, height: `${height / unit}px` };
  return (
    <div class="where" style={style} aria-hidden="true">
      <img src={`/v1/inspections/${report.value?.id ?? ""}/thumbnail`} alt="" draggable={false} />
      <svg
        viewBox={`0 0 ${width} ${height}`}
        onClick={(event) => stage.value?.goTo(event.offsetX * unit, event.offsetY * unit)}
      >
        <rect {...shown.value} />
      </svg>
    </div>
  );
}
