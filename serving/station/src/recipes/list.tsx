// All recipes in use, and the way to a new one.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { useBack } from "../back";
import { link } from "../route";
import { may } from "../session";
import { t, time } from "../words";
import { listRecipes, readChallenge } from "./calls";
import { NewRecipe } from "./create";
import { shownAt, SMALL_PX } from "./pictures";
import type { RecipeReport } from "./wire";

const MOST_LOOKED_AT = 40; // recipes whose lock is asked for, one request each

export function RecipeList() {
  const all = useSignal<RecipeReport[] | null>(null);
  const locked = useSignal<ReadonlySet<string>>(new Set());
  const trouble = useSignal<ApiError | null>(null);
  const search = useSignal("");

  async function load() {
    trouble.value = null;
    try {
      all.value = await listRecipes();
      if (may("operator")) void findLocks(all.value);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      trouble.value = error;
    }
  }

  async function findLocks(recipes: RecipeReport[]) {
    const asked = recipes.slice(0, MOST_LOOKED_AT).map(async ({ name }) => {
      const found = await readChallenge(name).catch(() => null); // the list is of use without
      return found?.state.locked ? [name] : [];
    });
    locked.value = new Set((await Promise.all(asked)).flat());
  }

  useEffect(() => void load(), []);
  useBack(() => trouble.value && void load());

  const wanted = search.value.toLowerCase();
  const shown = all.value?.filter((one) => one.name.toLowerCase().includes(wanted)) ?? [];
  return (
    <div class="recipe-list" data-two={may("engineer")}>
      <section aria-labelledby="recipes-title">
        <div class="list-head">
          <h1 id="recipes-title">{t("recipes.title")}</h1>
          {all.value && all.value.length > 6 && (
            <input
              type="search"
              aria-label={t("recipes.search")}
              placeholder={t("recipes.search")}
              value={search}
              onInput={(event) => (search.value = event.currentTarget.value)}
            />
          )}
        </div>
        {trouble.value && (
          <p class="empty" role="alert">
            {trouble.value.message} {trouble.value.hint}{" "}
            <button type="button" onClick={() => void load()}>
              {t("shell.retry")}
            </button>
          </p>
        )}
        {!all.value && !trouble.value && <p class="empty">{t("shell.loading")}</p>}
        {all.value?.length === 0 && (
          <div class="explained">
            <h2>{t("recipes.empty.title")}</h2>
            <p>{t("recipes.empty")}</p>
          </div>
        )}
        <ul class="recipe-cards">
          {shown.map((recipe) => (
            <Card key={recipe.name} recipe={recipe} isLocked={locked.value.has(recipe.name)} />
          ))}
        </ul>
      </section>
      {may("engineer") && <NewRecipe names={all.value?.map((one) => one.name) ?? []} />}
    </div>
  );
}

function Card({ recipe: { name, revision, created, actor, recipe, references }, isLocked }: { recipe: RecipeReport; isLocked: boolean }) {
  const zones = recipe.ignore.length + recipe.regions.length;
  const facts = [
    t("recipes.card.references", { n: references.length }),
    recipe.px_per_mm !== null && t("recipes.scale.words", { n: recipe.px_per_mm }),
    zones > 0 && t("recipes.card.zones", { n: zones }),
    recipe.targets.length > 0 && t("recipes.card.targets", { n: recipe.targets.length }),
    recipe.calibration && t("recipes.card.calibrated"),
    recipe.model_version && t("recipes.card.pinned", { version: recipe.model_version }),
  ].filter(Boolean);
  return (
    <li>
      <a class="recipe-card" href={link("recipes", name)}>
        {references[0] ? <img src={shownAt(references[0], SMALL_PX)} alt="" loading="lazy" /> : <span class="no-reference" />}
        <span class="recipe-facts">
          <strong>
            {name}
            {isLocked && <span class="verdict ERROR">{t("recipes.locked")}</span>}
          </strong>
          <small>{facts.join(" \u00b7 ")}</small>
          <small>
            {t("recipes.card.revision", { n: revision, who: actor || t("recipes.somebody"), when: time(created) })}
          </small>
        </span>
      </a>
    </li>
  );
}
