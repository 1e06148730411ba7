// What is to be inspected, and how: files, recipe, golden references, and the button.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { request } from "../api";
import { notifyError } from "../notices";
import type { RecipeReport } from "../recipes/wire";
import { t } from "../words";
import {
  canChange,
  chooseForAll,
  chooseRecipe,
  clearDone,
  done,
  isBusy,
  recipe,
  recipeHasReferences,
  references,
  removeReference,
  rows,
  start,
  stop,
  toSend,
  useAsBoard,
} from "./batch";

export function Setup({ choose }: { choose: () => void }) {
  const count = toSend.value.length;

  return (
    <section class="inspect-setup" aria-labelledby="inspect-title">
      <h1 id="inspect-title">{t("inspect.title")}</h1>
      <div class="drop">
        <svg viewBox="0 0 48 48" width="44" height="44" aria-hidden="true">
          <path d="M24 31V9m0 0-8 8m8-8 8 8M8 29v8a3 3 0 0 0 3 3h26a3 3 0 0 0 3-3v-8" />
        </svg>
        <strong>{t("inspect.drop")}</strong>
        <small>{t("inspect.drop.formats")}</small>
        <button type="button" onClick={choose}>
          {t("inspect.choose")} <kbd>O</kbd>
        </button>
      </div>
      <RecipeChooser />
      {!recipeHasReferences.value && <References />}
      <div class="inspect-actions">
        <button type="button" class="primary" disabled={!count} onClick={start}>
          {count === 0 ? t("inspect.start.none") : count === 1 ? t("inspect.start.one") : t("inspect.start", { n: count })}{" "}
          <kbd>I</kbd>
        </button>
        {isBusy.value && (
          <button type="button" onClick={stop}>
            {t("inspect.stop")}
          </button>
        )}
        {done.value.length > 0 && (
          <button type="button" onClick={clearDone}>
            {t("inspect.clear")}
          </button>
        )}
      </div>
    </section>
  );
}

function RecipeChooser() {
  const recipes = useSignal<RecipeReport[] | null>(null);
  useEffect(() => {
    request<{ recipes: RecipeReport[] }>("/v1/recipes").then((page) => (recipes.value = page.recipes), notifyError);
  }, []);
  const chosen = recipes.value?.find((one) => one.name === recipe.value);
  const own = chosen?.references ?? [];
  useEffect(() => {
    recipeHasReferences.value = own.length > 0;
  }, [own.length]);
  return (
    <div class="field">
      <label for="inspect-recipe">{t("inspect.recipe")}</label>
      <select id="inspect-recipe" value={recipe.value} onChange={(event) => chooseRecipe(event.currentTarget.value)}>
        <option value="">{t("inspect.recipe.none")}</option>
        {recipe.value && recipes.value && !chosen && (
          <option value={recipe.value}>{t("inspect.recipe.gone", { name: recipe.value })}</option>
        )}
        {recipes.value?.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {chosen && own.length > 0 && (
        <small>{t("inspect.recipe.own", { names: own.map((one) => one.name).join(", ") })}</small>
      )}
      {chosen && own.length === 0 && <small>{t("inspect.recipe.without")}</small>}
    </div>
  );
}

function References() {
  const open = rows.value.filter(canChange);
  const [first] = open;
  const common = first && open.every((row) => row.reference === first.reference) ? first.reference : null;
  return (
    <div class="field">
      <h2>{t("inspect.references")}</h2>
      <small>{t("inspect.references.pairing")}</small>
      {references.value.length > 0 && (
        <ul class="reference-files">
          {references.value.map((file, index) => (
            <li key={`${file.name}${index}`}>
              <span title={file.name}>{file.name}</span>
              <button type="button" class="link" onClick={() => useAsBoard(file)}>
                {t("inspect.references.is_board")}
              </button>
              <button type="button" class="link" aria-label={t("inspect.remove", { name: file.name })} onClick={() => removeReference(file)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {references.value.length > 0 && open.length > 1 && (
        <label class="row">
          {t("inspect.references.all")}
          <select
            value={common ? references.value.indexOf(common) : -1}
            onChange={(event) => chooseForAll(references.value[Number(event.currentTarget.value)] ?? null)}
          >
            <option value={-1}>{t("inspect.references.each")}</option>
            {references.value.map((file, index) => (
              <option key={index} value={index}>
                {file.name}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}
