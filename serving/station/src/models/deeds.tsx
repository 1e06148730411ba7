// The questions before a version is promoted, rolled back or retired.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { Dialog } from "../dialog";
import { notify } from "../notices";
import { listRecipes } from "../recipes/calls";
import type { RecipeReport } from "../recipes/wire";
import { Refusal } from "../refusal";
import { t } from "../words";
import { promote, retire, rollBack } from "./calls";
import { find, load, models, put } from "./state";
import type { Model } from "./wire";

const MOST_CHARS = 500;
/** What became of a class: given up, or "=" and its name now; empty: as the lineage says. */
const GIVEN_UP = "-";
const NAMED = "=";

interface Props {
  model: Model;
  onClose: () => void;
}

export function Promote({ model, onClose }: Props) {
  const recipe = useSignal("");
  const reason = useSignal("");
  const isOverride = useSignal(false);
  const recipes = useSignal<RecipeReport[]>([]);
  useEffect(() => {
    listRecipes().then((found) => (recipes.value = found), () => {}); // all boards can be chosen without
  }, []);
  const pinned = recipes.value.find(({ name }) => name === recipe.value)?.recipe.model_version;
  const base = pinned ? find(pinned) : models.value?.find(({ is_default }) => is_default);
  const lacking = (base?.classes ?? []).filter((label) => !model.classes.includes(label));
  const fates = useSignal<Record<string, string>>({});
  const send = async () => {
    const said = Object.entries(fates.value).filter(([label]) => lacking.includes(label));
    put(
      await promote(model.version, {
        recipe: recipe.value || null,
        reason: reason.value.trim(),
        override: isOverride.value,
        renamed: Object.fromEntries(said.filter(([, fate]) => fate.startsWith(NAMED)).map(([label, fate]) => [label, fate.slice(1)])),
        retired: said.filter(([, fate]) => fate === GIVEN_UP).map(([label]) => label),
      }),
    );
    notify(t("models.promote.started"));
  };
  return (
    <Question
      title={t("models.promote.title", { name: `${model.name} ${model.version}` })}
      deed={t(isOverride.value ? "models.promote.override.go" : "models.promote.go")}
      isDanger={isOverride.value}
      mayGo={!isOverride.value || reason.value.trim() !== ""}
      send={send}
      onClose={onClose}
    >
      <label class="field">
        {t("models.promote.where")}
        <select value={recipe.value} onChange={(event) => (recipe.value = event.currentTarget.value)}>
          <option value="">{t("models.promote.where.all")}</option>
          {recipes.value.map(({ name }) => (
            <option key={name} value={name}>
              {t("models.promote.where.recipe", { name })}
            </option>
          ))}
        </select>
      </label>
      <p class="muted">
        {recipe.value
          ? t("models.promote.recipe.words", { now: pinned ?? t("models.promote.follows") })
          : t("models.promote.all.words")}
      </p>
      {lacking.map((label) => (
        <label key={label} class="field">
          {t("models.promote.lacks", { label })}
          <select
            value={fates.value[label] ?? ""}
            onChange={(event) => (fates.value = { ...fates.value, [label]: event.currentTarget.value })}
          >
            <option value="">{t("models.promote.lineage")}</option>
            <option value={GIVEN_UP}>{t("models.promote.given_up")}</option>
            {model.classes.map((name) => (
              <option key={name} value={NAMED + name}>
                {t("models.promote.named", { name })}
              </option>
            ))}
          </select>
        </label>
      ))}
      <p class="muted">{t(isOverride.value ? "models.promote.gate.anyway" : "models.promote.gate")}</p>
      <label class="check">
        <input type="checkbox" checked={isOverride.value} onChange={(event) => (isOverride.value = event.currentTarget.checked)} />
        <span>
          {t("models.promote.override")}
          <small>{t("models.promote.override.words")}</small>
        </span>
      </label>
      <Reason
        name={t(isOverride.value ? "models.reason.needed" : "models.reason")}
        value={reason.value}
        set={(text) => (reason.value = text)}
      />
    </Question>
  );
}

export function RollBack({ model, onClose }: Props) {
  const pinning = useSignal<string[]>([]);
  useEffect(() => {
    const pins = ({ recipe: { model_version } }: RecipeReport) => model_version === model.version;
    listRecipes().then((found) => (pinning.value = found.filter(pins).map(({ name }) => name)), () => {});
  }, []);
  const places = [...(model.is_default ? [""] : []), ...pinning.value];
  const chosen = useSignal<string | null>(null);
  const recipe = chosen.value ?? places[0] ?? "";
  const reason = useSignal("");
  const send = async () => {
    await rollBack(model.version, recipe || null, reason.value.trim());
    notify(t("models.rollback.done"));
  };
  return (
    <Question
      title={t("models.rollback.title", { name: `${model.name} ${model.version}` })}
      deed={t("models.rollback.go")}
      mayGo={reason.value.trim() !== ""}
      send={send}
      onClose={onClose}
    >
      <label class="field">
        {t("models.promote.where")}
        <select value={recipe} onChange={(event) => (chosen.value = event.currentTarget.value)}>
          {places.map((name) => (
            <option key={name} value={name}>
              {name ? t("models.promote.where.recipe", { name }) : t("models.promote.where.all")}
            </option>
          ))}
        </select>
      </label>
      <p class="muted">{t("models.rollback.words")}</p>
      <Reason name={t("models.reason.needed")} value={reason.value} set={(text) => (reason.value = text)} />
    </Question>
  );
}

export function Retire({ model, onClose }: Props) {
  const reason = useSignal("");
  const send = async () => {
    await retire(model.version, reason.value.trim());
    notify(t("models.retire.done", { name: model.name }));
  };
  return (
    <Question
      title={t("models.retire.title", { name: `${model.name} ${model.version}` })}
      deed={t("models.retire.go")}
      isDanger
      mayGo={reason.value.trim() !== ""}
      send={send}
      onClose={onClose}
    >
      <p class="muted">{t("models.retire.words")}</p>
      <Reason name={t("models.reason.needed")} value={reason.value} set={(text) => (reason.value = text)} />
    </Question>
  );
}

interface QuestionProps {
  title: string;
  deed: string;
  mayGo: boolean;
  isDanger?: boolean;
  /** A refusal stays in the dialog, in words. */
  send: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

function Question({ title, deed, mayGo, isDanger = false, send, onClose, children }: QuestionProps) {
  const refusal = useSignal<ApiError | null>(null);
  const isBusy = useSignal(false);
  const go = async (event: Event) => {
    event.preventDefault();
    refusal.value = null;
    isBusy.value = true;
    try {
      await send();
      void load();
      onClose();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusal.value = error;
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="deed" onSubmit={(event) => void go(event)}>
        {children}
        {refusal.value && <Refusal error={refusal.value} />}
        <div class="choices">
          <button type="submit" class={isDanger ? "danger" : "primary"} disabled={!mayGo || isBusy.value}>
            {deed}
          </button>
          <button type="button" onClick={onClose}>
            {t("shell.cancel")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Reason({ name, value, set }: { name: string; value: string; set: (text: string) => void }) {
  return (
    <label class="field">
      {name}
      <textarea rows={2} maxLength={MOST_CHARS} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}
