// Scale, size, camera, model and least defect sizes of the open recipe.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t } from "../words";
import { CalibrationCard } from "./calibration";
import { classes } from "./classes";
import { change, draft } from "./draft";

export function SettingsForm({ isFixed }: { isFixed: boolean }) {
  const { px_per_mm, camera, model_version, note } = draft.value;
  return (
    <fieldset class="settings-form" disabled={isFixed}>
      <section class="card">
        <h2>{t("recipes.settings.board")}</h2>
        <NumberField
          label={t("recipes.scale")}
          unit={t("recipes.scale.unit")}
          help={t("recipes.scale.help")}
          value={px_per_mm}
          set={(value) => change({ px_per_mm: value }, "scale")}
        />
        <BoardSize />
        <TextField
          label={t("recipes.camera")}
          help={t("recipes.camera.help")}
          max={200}
          value={camera ?? ""}
          set={(value) => change({ camera: value || null }, "camera")}
        />
        <TextField
          label={t("recipes.model")}
          help={t("recipes.model.help")}
          max={64}
          value={model_version ?? ""}
          set={(value) => change({ model_version: value.trim() || null }, "model")}
        />
        <label class="field">
          <span>{t("recipes.note")}</span>
          <textarea
            rows={3}
            maxLength={2000}
            value={note}
            onInput={(event) => change({ note: event.currentTarget.value }, "note")}
          />
        </label>
      </section>
      <section class="card">
        <LeastSizes />
      </section>
      <CalibrationCard isFixed={isFixed} />
    </fieldset>
  );
}

/** A board has both sides or none: one that is typed alone waits here for the other. */
function BoardSize() {
  const { board_mm } = draft.value;
  const typed = useSignal<[number | null, number | null]>(board_mm ?? [null, null]);
  useEffect(() => {
    if (board_mm) typed.value = board_mm;
  }, [board_mm]);
  const [width, height] = typed.value;
  const set = (next: [number | null, number | null]) => {
    typed.value = next;
    change({ board_mm: next[0] !== null && next[1] !== null ? [next[0], next[1]] : null }, "board");
  };
  return (
    <>
      <div class="pair">
        <NumberField label={t("recipes.board.width")} unit={t("recipes.mm.unit")} value={width} set={(value) => set([value, height])} />
        <NumberField label={t("recipes.board.height")} unit={t("recipes.mm.unit")} value={height} set={(value) => set([width, value])} />
      </div>
      {(width === null) !== (height === null) && <small class="refused">{t("recipes.board.both")}</small>}
    </>
  );
}

function LeastSizes() {
  const sizes = draft.value.min_defect_mm;
  const typed = useSignal("");
  const set = (label: string, value: number | null) => {
    const { [label]: _, ...rest } = sizes;
    change({ min_defect_mm: value === null ? rest : { ...sizes, [label]: value } }, `least ${label}`);
  };
  const add = () => {
    const label = typed.value.trim();
    if (label && !(label in sizes)) set(label, 0.1);
    typed.value = "";
  };
  return (
    <>
      <h2>{t("recipes.least")}</h2>
      <p class="muted">{t("recipes.least.help")}</p>
      {Object.entries(sizes).map(([label, mm]) => (
        <div key={label} class="row least">
          <NumberField label={label} unit={t("recipes.mm.unit")} value={mm} set={(value) => value !== null && set(label, value)} />
          <button type="button" class="link" aria-label={t("recipes.least.remove", { label })} onClick={() => set(label, null)}>
            ×
          </button>
        </div>
      ))}
      <div class="row">
        <input
          list="recipe-classes"
          aria-label={t("recipes.class")}
          placeholder={t("recipes.class")}
          maxLength={200}
          value={typed}
          onInput={(event) => (typed.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && add()}
        />
        <button type="button" disabled={!typed.value.trim()} onClick={add}>
          {t("recipes.add")}
        </button>
      </div>
      {Object.keys(sizes).length > 0 && draft.value.px_per_mm === null && (
        <p class="refused" role="alert">
          {t("recipes.least.needs_scale")}
        </p>
      )}
      <datalist id="recipe-classes">
        {classes.value.map((label) => (
          <option key={label} value={label} />
        ))}
      </datalist>
    </>
  );
}

interface NumberProps {
  label: string;
  unit: string;
  help?: string;
  value: number | null;
  set: (value: number | null) => void;
}

export function NumberField({ label, unit, help, value, set }: NumberProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <span class="with-unit">
        <input
          type="number"
          min="0"
          step="any"
          value={value ?? ""}
          onInput={(event) => {
            const found = event.currentTarget.valueAsNumber;
            if (Number.isNaN(found)) set(null);
            else if (found > 0) set(found); // 0 on the way to 0.5 is not a size yet
          }}
        />
        {unit}
      </span>
      {help && <small>{help}</small>}
    </label>
  );
}

interface TextProps {
  label: string;
  help: string;
  max: number;
  value: string;
  set: (value: string) => void;
}

function TextField({ label, help, max, value, set }: TextProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input value={value} maxLength={max} spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
      <small>{help}</small>
    </label>
  );
}
