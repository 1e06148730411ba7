// What the thresholds are to promise, beside what reviewed boards say that they do.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { number, t } from "../words";
import { readPreview } from "./calls";
import { percent, targetWords } from "./changes";
import { classes, preview } from "./classes";
import { Curve } from "./curve";
import { change, draft, stored } from "./draft";
import { leastBoards, type ClassPreview } from "./preview";
import type { Target } from "./wire";

export function Targets({ isFixed }: { isFixed: boolean }) {
  const chosen = useSignal("");
  const trouble = useSignal<ApiError | null>(null);
  const { name, revision } = stored.value!;
  useEffect(() => {
    readPreview(name).then(
      (found) => {
        preview.value = found;
        const [most] = [...found.classes].sort((one, other) => other.boards - one.boards);
        if (!found.classes.some((one) => one.label === chosen.value)) chosen.value = most?.label ?? "";
      },
      (error) => {
        if (!(error instanceof ApiError)) throw error;
        trouble.value = error;
      },
    );
  }, [name, revision]);
  return (
    <div class="targets">
      <TargetTable isFixed={isFixed} />
      <section class="card preview" aria-labelledby="preview-title">
        <h2 id="preview-title">{t("recipes.preview")}</h2>
        {trouble.value && <p role="alert">{[trouble.value.message, trouble.value.hint].filter(Boolean).join(". ")}</p>}
        {preview.value && <Seen chosen={chosen.value} choose={(label) => (chosen.value = label)} />}
      </section>
    </div>
  );
}

function Seen({ chosen, choose }: { chosen: string; choose: (label: string) => void }) {
  const found = preview.value!;
  const one = found.classes.find(({ label }) => label === chosen);
  return (
    <>
      <p class="muted">
        {t("recipes.preview.boards", { n: found.boards, audited: found.audited, model: found.model_version })}
      </p>
      <div class="class-tabs" role="group" aria-label={t("recipes.class")}>
        {found.classes.map(({ label, real, missed, false_calls }) => (
          <button key={label} type="button" aria-pressed={label === chosen} onClick={() => choose(label)}>
            {label}
            <small>{t("recipes.preview.counts", { real: real.length + missed, false: false_calls.length })}</small>
          </button>
        ))}
      </div>
      {one && <ClassCard key={one.label} one={one} />}
      <small>{t("recipes.preview.words")}</small>
    </>
  );
}

function ClassCard({ one }: { one: ClassPreview }) {
  const isEmpty = !one.real.length && !one.false_calls.length && !one.missed;
  return (
    <>
      {isEmpty ? <p class="empty">{t("recipes.preview.none", { label: one.label })}</p> : <Curve one={one} />}
    </>
  );
}

function TargetTable({ isFixed }: { isFixed: boolean }) {
  const { targets } = draft.value;
  const set = (index: number, changed: Partial<Target>) =>
    change({ targets: targets.map((target, at) => (at === index ? { ...target, ...changed } : target)) }, `target ${index}`);
  return (
    <section class="card target-list" aria-labelledby="targets-title">
      <h2 id="targets-title">{t("recipes.targets")}</h2>
      <p class="muted">{t("recipes.targets.help")}</p>
      {targets.length === 0 && <p>{t("recipes.targets.none")}</p>}
      <fieldset disabled={isFixed}>
        {targets.map((target, index) => (
          <TargetRow
            key={index}
            target={target}
            set={(changed) => set(index, changed)}
            remove={() => change({ targets: targets.filter((_, at) => at !== index) })}
          />
        ))}
        {!isFixed && (
          <button
            type="button"
            disabled={targets.length >= 50}
            onClick={() => change({ targets: [...targets, { label: null, max_miss_rate: 0.01, confidence: 0.95 }] })}
          >
            {t("recipes.targets.add")}
          </button>
        )}
      </fieldset>
      <p class="muted">{t("recipes.targets.calibrate")}</p>
    </section>
  );
}

function TargetRow({ target, set, remove }: { target: Target; set: (changed: Partial<Target>) => void; remove: () => void }) {
  const label = target.label ?? t("recipes.target.all");
  return (
    <div class="target">
      <select
        aria-label={t("recipes.class")}
        value={target.label ?? ""}
        onChange={(event) => set({ label: event.currentTarget.value || null })}
      >
        <option value="">{t("recipes.target.all")}</option>
        {classes.value.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <Percent
        label={t("recipes.target.rate")}
        unit={t("recipes.target.rate.unit")}
        value={target.max_miss_rate}
        low={0.0001}
        high={0.9999}
        set={(max_miss_rate) => set({ max_miss_rate })}
      />
      <Percent
        label={t("recipes.target.confidence")}
        unit={t("recipes.target.confidence.unit")}
        value={target.confidence}
        low={0.5}
        high={0.9999}
        set={(confidence) => set({ confidence })}
      />
      <button type="button" class="link" aria-label={t("recipes.target.remove", { label })} onClick={remove}>
        ×
      </button>
      <TargetTold target={target} />
    </div>
  );
}

/** What the reviewed boards say of it once it is stored; until then what any such target takes. */
function TargetTold({ target }: { target: Target }) {
  const known = [...(preview.value?.targets ?? []), ...(preview.value?.classes ?? []).flatMap((one) => one.targets)];
  const state = known.find((one) => targetWords(one.target) === targetWords(target) && one.target.label === target.label);
  if (!state) return <small>{t("recipes.target.needs", { n: leastBoards(target) })}</small>;
  const { more_boards } = state;
  return (
    <small data-kept={more_boards === 0} title={state.words}>
      {more_boards === 0 && t("recipes.target.supported")}
      {more_boards === null && t("recipes.target.hopeless")}
      {!!more_boards && t("recipes.target.more", { n: number(more_boards) })}
    </small>
  );
}

interface PercentProps {
  label: string;
  value: number;
  unit: string;
  low: number;
  high: number;
  set: (value: number) => void;
}

function Percent({ label, value, unit, low, high, set }: PercentProps) {
  return (
    <label class="with-unit">
      <input
        type="number"
        min={100 * low}
        max={100 * high}
        step="any"
        aria-label={label}
        value={percent(value)}
        onInput={(event) => {
          const share = event.currentTarget.valueAsNumber / 100;
          if (share >= low && share <= high) set(Number(share.toFixed(8)));
        }}
      />
      {unit}
    </label>
  );
}
