// Asks what was drawn: a class that is known, chosen as one types, or any new word.

import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../words";
import { knownClasses } from "./classes";
import { chooseMissed } from "./escape";
import { addMissed, review } from "./review";
import { drawn, view } from "./state";

const MOST_SHOWN = 7;
const MOST_CHARS = 200;
const HEIGHT_PX = 300;
const WIDTH_PX = 260;

export function DrawLabel() {
  const field = useRef<HTMLInputElement>(null);
  const typed = useSignal("");
  const chosen = useSignal(-1);
  useLayoutEffect(() => field.current?.focus(), []); // before the next key comes
  const offered = useComputed(() => {
    const wanted = typed.value.trim().toLowerCase();
    return knownClasses.value.filter((label) => label.toLowerCase().includes(wanted)).slice(0, MOST_SHOWN);
  });
  const isNew = typed.value.trim() !== "" && !knownClasses.value.includes(typed.value.trim());

  function take(label: string) {
    const shape = drawn.value;
    if (!shape || !label) return;
    addMissed({ ...shape, label });
    drawn.value = null;
    chooseMissed((review.value?.missed.length ?? 0) - 1);
  }

  function key(event: KeyboardEvent) {
    const count = offered.value.length;
    if (event.isComposing) return; // Enter and the arrows are the input method's then
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      const from = chosen.value < 0 && step < 0 ? 0 : chosen.value;
      if (count) chosen.value = (from + step + count) % count;
    } else if (event.key === "Escape") {
      event.stopPropagation();
      drawn.value = null;
    }
  }

  function submit(event: Event) {
    event.preventDefault();
    take(offered.value[chosen.value] ?? typed.value.trim());
  }

  return (
    <form class="draw-label" style={place()} onSubmit={submit} aria-label={t("board.draw.class")}>
      <label>
        {t("board.draw.class")}
        <input
          ref={field}
          role="combobox"
          aria-expanded={offered.value.length > 0}
          aria-controls="draw-labels"
          aria-activedescendant={chosen.value >= 0 ? `draw-label-${chosen.value}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck={false}
          maxLength={MOST_CHARS}
          value={typed}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            chosen.value = -1;
          }}
          onKeyDown={key}
        />
      </label>
      <ul id="draw-labels" role="listbox" aria-label={t("board.draw.known")}>
        {offered.value.map((label, index) => (
          <li
            key={label}
            id={`draw-label-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onPointerDown={(event) => {
              event.preventDefault(); // the field keeps the focus
              take(label);
            }}
          >
            {label}
          </li>
        ))}
      </ul>
      <p class="muted" role="status">
        {isNew && chosen.value < 0
          ? t("board.draw.new", { label: typed.value.trim() })
          : t("board.draw.choose")}
      </p>
      <div class="row">
        <button type="submit" class="primary" disabled={typed.value.trim() === "" && chosen.value < 0}>
          {t("board.draw.add")}
        </button>
        <button type="button" onClick={() => (drawn.value = null)}>
          {t("shell.cancel")}
        </button>
      </div>
    </form>
  );
}

/** Beside what was drawn, on the stage. */
function place(): { left: string; top: string } {
  const shape = drawn.value;
  const corners = shape?.polygon ?? (shape?.box_xyxy ? [shape.box_xyxy.slice(2)] : []);
  const { scale, x, y } = view.value;
  const right = Math.max(...corners.map(([across = 0]) => across)) * scale + x + 12;
  const bottom = Math.max(...corners.map(([, down = 0]) => down)) * scale + y - 40;
  return {
    left: `min(${Math.max(right, 8)}px, 100% - ${WIDTH_PX + 8}px)`,
    top: `clamp(8px, ${bottom}px, 100% - ${HEIGHT_PX}px)`,
  };
}
