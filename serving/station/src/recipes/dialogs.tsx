// Questions of the recipe page: leaving with unsaved changes, somebody else's revision, taking a recipe out of use.

import { notify, notifyError } from "../notices";
import { go } from "../route";
import { t, time } from "../words";
import { deleteRecipe } from "./calls";
import { changesBetween, changesOf, type Change } from "./changes";
import { Dialog } from "./dialog";
import { discard, draft, keepMine, stored, takeTheirs, theirs } from "./draft";
import { leave, wantsTo } from "./leaving";

export function Leaving() {
  if (wantsTo.value === null || !stored.value) return null;
  const stay = () => (wantsTo.value = null);
  return (
    <Dialog title={t("recipes.leave.title", { name: stored.value.name })} onClose={stay}>
      <p>{t("recipes.leave.words")}</p>
      <Changes changes={changesBetween(stored.value.recipe, draft.value)} />
      <div class="row">
        <button type="button" class="primary" onClick={stay}>
          {t("recipes.leave.stay")}
        </button>
        <button type="button" onClick={leave}>
          {t("recipes.leave.discard")}
        </button>
      </div>
    </Dialog>
  );
}

export function Conflict() {
  const other = theirs.value;
  const base = stored.value;
  if (!other || !base) return null;
  const mine = async () => {
    if (await keepMine()) notify(t("recipes.saved", { n: stored.value!.revision }));
  };
  return (
    <Dialog title={t("recipes.conflict.title")} onClose={() => (theirs.value = null)}>
      <p>
        {t("recipes.conflict.words", {
          who: other.actor || t("recipes.somebody"),
          when: time(other.created),
          n: other.revision,
        })}
      </p>
      <div class="both">
        <div>
          <h3>{t("recipes.conflict.theirs")}</h3>
          <Changes changes={changesOf(base, other)} />
        </div>
        <div>
          <h3>{t("recipes.conflict.mine")}</h3>
          <Changes changes={changesBetween(base.recipe, draft.value)} />
        </div>
      </div>
      <p class="muted">{t("recipes.conflict.hint")}</p>
      <div class="row">
        <button type="button" onClick={() => (theirs.value = null)}>
          {t("recipes.conflict.back")}
        </button>
        <button type="button" onClick={takeTheirs}>
          {t("recipes.conflict.take")}
        </button>
        <button type="button" onClick={() => void mine()}>
          {t("recipes.conflict.keep", { n: other.revision + 1 })}
        </button>
      </div>
    </Dialog>
  );
}

export function Deleting({ name, onClose }: { name: string; onClose: () => void }) {
  const remove = async () => {
    try {
      await deleteRecipe(name);
      discard();
      notify(t("recipes.delete.done", { name }));
      go("recipes");
    } catch (error) {
      onClose();
      notifyError(error);
    }
  };
  return (
    <Dialog title={t("recipes.delete.title", { name })} onClose={onClose}>
      <p>{t("recipes.delete.words")}</p>
      <div class="row">
        <button type="button" onClick={onClose}>
          {t("shell.cancel")}
        </button>
        <button type="button" class="danger" onClick={() => void remove()}>
          {t("recipes.delete")}
        </button>
      </div>
    </Dialog>
  );
}

export function Changes({ changes }: { changes: Change[] }) {
  if (!changes.length) return <p class="muted">{t("recipes.changes.none")}</p>;
  return (
    <ul class="changes">
      {changes.map(({ what, before, after }, index) => (
        <li key={index}>
          <strong>{what}</strong>
          <span>
            {before ? <del>{before}</del> : <span class="muted">{t("recipes.changes.new")}</span>}
            {" \u2192 "}
            {after ? <ins>{after}</ins> : <span class="muted">{t("recipes.changes.gone")}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
