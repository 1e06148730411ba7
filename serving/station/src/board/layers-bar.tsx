// The row above the stage: how the board stands against its reference, what lies over it, and what draws.

import type { ComponentChildren } from "preact";
import { t, type Key } from "../words";
import {
  chooseMode,
  chooseOverlay,
  hasReference,
  LEVELS,
  MODES,
  overlay,
  referenceFault,
  report,
  shownMode,
  tool,
  type Overlay,
} from "./state";

const OVERLAYS: Overlay[] = ["defect_map", ...LEVELS.map((level) => `attention_${level}` as const), "gate"];

export function LayersBar() {
  return (
    <div class="layers-bar" role="toolbar" aria-label={t("board.bar")}>
      <Group name={t("board.modes")} hint="v">
        {MODES.map((one) => (
          <Choice
            key={one}
            isChosen={shownMode.value === one}
            isOff={one !== "board" && !hasReference.value}
            title={one === "board" || hasReference.value ? undefined : whyNone()}
            onChoose={() => chooseMode(one)}
          >
            {t(`board.mode.${one}`)}
          </Choice>
        ))}
      </Group>
      <Group name={t("board.overlays")}>
        {OVERLAYS.map((one) => (
          <Choice
            key={one}
            isChosen={overlay.value === one}
            hint={HINTS[one]}
            title={t(`board.layer.${one}`)}
            onChoose={() => chooseOverlay(overlay.value === one ? null : one)}
          >
            {t(`board.short.${one}` as Key)}
          </Choice>
        ))}
      </Group>
      <Group name={t("board.tools")} isLast>
        {(["box", "polygon"] as const).map((one) => (
          <Choice
            key={one}
            isChosen={tool.value === one}
            hint={one === "box" ? "d" : "g"}
            title={t(`board.key.${one}`)}
            onChoose={() => (tool.value = tool.value === one ? "look" : one)}
          >
            {t(`board.tool.${one}`)}
          </Choice>
        ))}
      </Group>
    </div>
  );
}

function whyNone(): string | undefined {
  return report.value ? referenceFault.value || t("board.noreference") : undefined;
}

const HINTS: Partial<Record<Overlay, string>> = { defect_map: "m", attention_4: "t", gate: "s" };

function Group(props: { name: string; hint?: string; isLast?: boolean; children: ComponentChildren }) {
  return (
    <div class={props.isLast ? "group last" : "group"} role="group" aria-label={props.name}>
      {props.hint && <kbd aria-hidden="true">{props.hint.toUpperCase()}</kbd>}
      {props.children}
    </div>
  );
}

function Choice(props: {
  isChosen: boolean;
  isOff?: boolean;
  hint?: string;
  title?: string;
  onChoose: () => void;
  children: ComponentChildren;
}) {
  return (
    <button
      type="button"
      aria-pressed={props.isChosen}
      disabled={props.isOff}
      title={props.title}
      onClick={(event) => {
        props.onChoose();
        // After a click the space bar is the stage's again; whoever came by keyboard stays.
        if (event.detail > 0) event.currentTarget.blur();
      }}
    >
      {props.children}
      {props.hint && <kbd aria-hidden="true">{props.hint.toUpperCase()}</kbd>}
    </button>
  );
}
