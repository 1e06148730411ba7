// Every revision of the open recipe: who stored it, when, what it changed; and the way back to one.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { notify, notifyError } from "../notices";
import { may } from "../session";
import { t, time } from "../words";
import { fetchReferences, readRevisions, storePictures, storeSettings } from "./calls";
import { changesOf } from "./changes";
import { Changes } from "./dialogs";
import { isChanged, rebase, stored } from "./draft";
import type { RecipeReport } from "./wire";

export function Revisions() {
  const now = stored.value!;
  const all = useSignal<RecipeReport[]>([]);
  const chosen = useSignal(now.revision);
  /** null: the one before. */
  const against = useSignal<number | null>(null);
  const isBusy = useSignal(false);
  useEffect(() => {
    readRevisions(now.name).then((found) => (all.value = found), notifyError);
  }, [now.name, now.revision]);

  if (!all.value.length) return <p class="empty">{t("shell.loading")}</p>;
  const at = all.value.findIndex((one) => one.revision === chosen.value);
  const shown = all.value[at];
  const before = against.value === null ? all.value[at + 1] : all.value.find((one) => one.revision === against.value);

  async function goBack(to: RecipeReport) {
    isBusy.value = true;
    try {
      rebase(await storeAgain(to, now));
      chosen.value = stored.value!.revision;
      against.value = null;
      notify(t("recipes.revisions.back.done", { n: to.revision, now: stored.value!.revision }));
    } catch (error) {
      notifyError(error);
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <div class="revisions">
      <ol class="card" aria-label={t("recipes.revisions")}>
        {all.value.map((one, index) => (
          <li key={one.revision}>
            <button type="button" aria-pressed={one.revision === chosen.value} onClick={() => (chosen.value = one.revision)}>
              <strong>{t("recipes.revision", { n: one.revision })}</strong>
              <span>{one.actor || t("recipes.somebody")}</span>
              <small>{time(one.created)}</small>
              <small>
                {index === all.value.length - 1
                  ? t("recipes.revisions.first")
                  : t("recipes.revisions.changes", { n: changesOf(all.value[index + 1], one).length })}
              </small>
            </button>
          </li>
        ))}
      </ol>
      {shown && (
        <section class="card" aria-labelledby="revision-title">
          <div class="row">
            <h2 id="revision-title">{t("recipes.revision", { n: shown.revision })}</h2>
            <label class="row against">
              {t("recipes.revisions.against")}
              <select
                value={against.value ?? ""}
                onChange={(event) => (against.value = Number(event.currentTarget.value) || null)}
              >
                <option value="">{t("recipes.revisions.before")}</option>
                {all.value
                  .filter((one) => one.revision !== shown.revision)
                  .map((one) => (
                    <option key={one.revision} value={one.revision}>
                      {t("recipes.revision", { n: one.revision })}
                    </option>
                  ))}
              </select>
            </label>
          </div>
          {before ? <Changes changes={changesOf(before, shown)} /> : <p class="muted">{t("recipes.revisions.first")}</p>}
          {shown.recipe.note && <blockquote>{shown.recipe.note}</blockquote>}
          {may("engineer") && shown.revision !== now.revision && (
            <>
              <button type="button" disabled={isBusy.value || isChanged.value} onClick={() => void goBack(shown)}>
                {t("recipes.revisions.back", { n: shown.revision })}
              </button>
              <small>{t(isChanged.value ? "recipes.revisions.back.unsaved" : "recipes.revisions.back.help")}</small>
            </>
          )}
        </section>
      )}
    </div>
  );
}

/** The old settings, and its pictures where they are others than today's; a recipe without any keeps today's. */
async function storeAgain(old: RecipeReport, now: RecipeReport): Promise<RecipeReport> {
  const names = (recipe: RecipeReport) => recipe.references.map((one) => `${one.name} ${one.sha256}`).join("\n");
  if (!old.references.length || names(old) === names(now)) return storeSettings(now.name, old.recipe, now.revision);
  const files = await fetchReferences(old.references);
  return storePictures(now.name, old.recipe, { field: "reference", files }, now.revision);
}
