// What the job starts from and what it may learn from, and the button that starts it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ApiError } from "../api";
import { listRecipes } from "../recipes/calls";
import { Refusal } from "../refusal";
import { number, t } from "../words";
import { canStart, WANTED, type Draft } from "./plan";
import { models } from "./state";
import type { Model } from "./wire";

interface Props {
  draft: Draft;
  set: (changed: Partial<Draft>) => void;
  base: Model | undefined;
  /** The classes to be added, with how many examples there are to learn from. */
  boards: { label: string; train: number }[];
  refusal: ApiError | null;
  isBusy: boolean;
  start: () => void;
}

export function RetrainForm({ draft, set, base, boards, refusal, isBusy, start }: Props) {
  const recipes = useSignal<string[]>([]);
  useEffect(() => {
    listRecipes().then((found) => (recipes.value = found.map(({ name }) => name)), () => {}); // all boards will do
  }, []);
  return (
    <form
      class="plan"
      aria-label={t("retrain.plan")}
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <h2>{t("retrain.plan")}</h2>
      <label class="field">
        {t("retrain.base")}
        <select value={draft.base} onChange={(event) => set({ base: event.currentTarget.value, rename: {}, retire: [] })}>
          <option value="">{t("retrain.base.production", { name: models.value?.find((one) => one.is_default)?.name ?? "" })}</option>
          {models.value
            ?.filter(({ stage }) => stage !== "retired")
            .map(({ name, version }) => (
              <option key={version} value={version}>
                {name} {version}
              </option>
            ))}
        </select>
      </label>
      <div class="pair">
        <label class="field">
          {t("retrain.recipe")}
          <select value={draft.recipe} onChange={(event) => set({ recipe: event.currentTarget.value })}>
            <option value="">{t("retrain.recipe.all")}</option>
            {recipes.value.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="field">
          {t("retrain.since")}
          <input type="date" value={draft.since} onChange={(event) => set({ since: event.currentTarget.value })} />
        </label>
      </div>
      <fieldset class="replay">
        <legend>{t("retrain.replay")}</legend>
        {(["verified", "drawn"] as const).map((one) => (
          <label key={one} class="check">
            <input type="radio" name="replay" checked={draft.replay === one} onChange={() => set({ replay: one })} />
            <span>
              {t(`retrain.replay.${one}`)}
              <small>{t(`retrain.replay.${one}.words`)}</small>
            </span>
          </label>
        ))}
      </fieldset>
      {base && <Renaming base={base} draft={draft} set={set} />}
      <label class="field">
        {t("retrain.note")}
        <input maxLength={200} value={draft.note} onInput={(event) => set({ note: event.currentTarget.value })} />
      </label>
      <Summary boards={boards} />
      {refusal && <Refusal error={refusal} />}
      <button type="submit" class="primary" disabled={isBusy || !canStart(draft, boards)}>
        {t("retrain.start")}
      </button>
    </form>
  );
}

function Summary({ boards }: { boards: Props["boards"] }) {
  if (boards.length === 0) return <p class="muted">{t("retrain.nothing")}</p>;
  return (
    <ul class="summary" aria-live="polite">
      {boards.map(({ label, train }) => (
        <li key={label} data-enough={train >= WANTED}>
          {train === 0 && t("retrain.summary.none", { label })}
          {train > 0 && train < WANTED && t("retrain.summary.few", { label, n: number(train), wanted: WANTED })}
          {train >= WANTED && t("retrain.summary.enough", { label, n: number(train) })}
        </li>
      ))}
    </ul>
  );
}

/** What happens to the classes that are known already: nothing, unless somebody asks for it. */
function Renaming({ base, draft, set }: { base: Model; draft: Draft; set: Props["set"] }) {
  return (
    <details class="renaming">
      <summary>{t("retrain.old")}</summary>
      <ul>
        {base.classes.map((label) => {
          const isRetired = draft.retire.includes(label);
          return (
            <li key={label}>
              <span data-retired={isRetired}>{label}</span>
              <input
                aria-label={t("retrain.rename", { label })}
                placeholder={t("retrain.rename.to")}
                maxLength={200}
                disabled={isRetired}
                value={draft.rename[label] ?? ""}
                onInput={(event) => set({ rename: { ...draft.rename, [label]: event.currentTarget.value } })}
              />
              <label class="check">
                <input
                  type="checkbox"
                  aria-label={t("retrain.retire", { label })}
                  checked={isRetired}
                  onChange={() =>
                    set({ retire: isRetired ? draft.retire.filter((one) => one !== label) : [...draft.retire, label] })
                  }
                />
                {t("retrain.retire.short")}
              </label>
            </li>
          );
        })}
      </ul>
    </details>
  );
}
