// One recipe: its head with what is unsaved, and a tab for each part of it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { useBack } from "../back";
import { nameKeys } from "../keys";
import { notify } from "../notices";
import { link, place, replaceQuery } from "../route";
import { may } from "../session";
import { t, time, type Key } from "../words";
import { readChallenge, readRecipe } from "./calls";
import { ChallengeTab } from "./challenge";
import { changesBetween } from "./changes";
import { Changes, Conflict, Deleting, Leaving } from "./dialogs";
import { canRedo, canUndo, discard, draft, fault, isChanged, isSaving, open, redo, save, stored, undo } from "./draft";
import { guardLeaving } from "./leaving";
import { GoodBoards, References, shownReference } from "./references";
import { Revisions } from "./revisions";
import { SettingsForm } from "./settings";
import { Targets } from "./targets";
import type { Challenge } from "./wire";
import { ZoneBoard } from "./zone_board";
import { ZoneList, ZoneTools } from "./zone_list";
import { choose, isFaulty, takeTool } from "./zone_state";
import { fit, zoom } from "./zone_view";

const TABS = [
  { tab: "board", role: "line" },
  { tab: "settings", role: "line" },
  { tab: "targets", role: "operator" },
  { tab: "challenge", role: "operator" },
  { tab: "revisions", role: "line" },
] as const;

export function RecipePage({ name }: { name: string }) {
  const trouble = useSignal<ApiError | null>(null);
  const challenge = useSignal<Challenge | null>(null);
  const load = () =>
    readRecipe(name).then(open, (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      trouble.value = error;
    });
  useEffect(() => {
    if (may("operator")) readChallenge(name).then((found) => (challenge.value = found), () => {});
    if (stored.value?.name === name && isChanged.value) return; // a login came between: what was changed is still here
    stored.value = null;
    shownReference.value = 0;
    takeTool("select");
    choose(null);
    fit();
    void load();
  }, [name]);
  useBack(() => trouble.value && void load());
  useEffect(guardLeaving, [name]);
  useEffect(nameRecipeKeys, []);
  if (trouble.value && !stored.value) {
    return (
      <p class="empty" role="alert">
        {trouble.value.message} {trouble.value.hint} <a href={link("recipes")}>{t("recipes.back")}</a>
      </p>
    );
  }
  if (stored.value?.name !== name) return <p class="empty">{t("shell.loading")}</p>;
  const wanted = place.value.query.get("tab");
  const tabs = TABS.filter(({ role }) => may(role)).map(({ tab }) => tab);
  const tab = tabs.find((one) => one === wanted) ?? "board";
  return (
    <div class="recipe">
      <Head isLocked={challenge.value?.state.locked ?? false} />
      <div class="tabs" role="group" aria-label={t("recipes.parts")}>
        {tabs.map((one) => (
          <button key={one} type="button" aria-pressed={one === tab} onClick={() => replaceQuery({ tab: one })}>
            {t(`recipes.tab.${one}` as Key)}
          </button>
        ))}
        {may("engineer") && <SaveBar />}
      </div>
      <div class="recipe-part" data-tab={tab}>
        {tab === "board" && <BoardTab />}
        {tab === "settings" && <SettingsForm isFixed={!may("engineer")} />}
        {tab === "targets" && <Targets isFixed={!may("engineer")} />}
        {tab === "challenge" && (
          <ChallengeTab name={name} challenge={challenge.value} set={(found) => (challenge.value = found)} />
        )}
        {tab === "revisions" && <Revisions />}
      </div>
      <Leaving />
      <Conflict />
    </div>
  );
}

async function store(): Promise<void> {
  if (await save()) notify(t("recipes.saved", { n: stored.value!.revision }));
}

function nameRecipeKeys(): () => void {
  if (!may("engineer")) return () => {};
  const unless = (run: () => void) => () => document.querySelector("dialog[open]") || run();
  return nameKeys([
    { key: "ctrl+s", words: t("recipes.save"), run: unless(() => isChanged.value && !isFaulty.value && void store()) },
    { key: "ctrl+z", words: t("recipes.undo"), run: unless(undo) },
    { key: "ctrl+y", words: t("recipes.redo"), run: unless(redo) },
    { key: "v", words: t("recipes.zones.tool.select"), run: unless(() => takeTool("select")) },
    { key: "d", words: t("recipes.zones.tool.rectangle"), run: unless(() => takeTool("rectangle")) },
    { key: "g", words: t("recipes.zones.tool.polygon"), run: unless(() => takeTool("polygon")) },
    { key: "+", words: t("recipes.zones.zoom.in"), run: unless(() => zoom(1.5)) },
    { key: "-", words: t("recipes.zones.zoom.out"), run: unless(() => zoom(1 / 1.5)) },
    { key: "0", words: t("recipes.zones.zoom.fit"), run: unless(fit) },
  ]);
}

function Head({ isLocked }: { isLocked: boolean }) {
  const { name, revision, created, actor } = stored.value!;
  const isDeleting = useSignal(false);
  return (
    <div class="recipe-head">
      <a href={link("recipes")}>{t("recipes.back")}</a>
      <h1>{name}</h1>
      {isLocked && <span class="verdict ERROR">{t("recipes.locked")}</span>}
      <span class="muted">
        {t("recipes.card.revision", { n: revision, who: actor || t("recipes.somebody"), when: time(created) })}
      </span>
      {may("engineer") && (
        <button type="button" class="link danger" onClick={() => (isDeleting.value = true)}>
          {t("recipes.delete")}
        </button>
      )}
      {isDeleting.value && <Deleting name={name} onClose={() => (isDeleting.value = false)} />}
    </div>
  );
}

function SaveBar() {
  const changes = changesBetween(stored.value!.recipe, draft.value);
  return (
    <div class="save-bar">
      {fault.value && (
        <p class="refused" role="alert">
          {fault.value.message} {fault.value.hint}
        </p>
      )}
      {isChanged.value && (
        <details>
          <summary>{t("recipes.unsaved", { n: Math.max(1, changes.length) })}</summary>
          <Changes changes={changes} />
        </details>
      )}
      <button type="button" disabled={!canUndo.value} onClick={undo}>
        {t("recipes.undo")}
      </button>
      <button type="button" disabled={!canRedo.value} onClick={redo}>
        {t("recipes.redo")}
      </button>
      <button type="button" disabled={!isChanged.value} onClick={discard}>
        {t("recipes.discard")}
      </button>
      <button type="button" class="primary" disabled={!isChanged.value || isSaving.value || isFaulty.value} onClick={() => void store()}>
        {t("recipes.save")} <kbd>{t("recipes.save.key")}</kbd>
      </button>
    </div>
  );
}

function BoardTab() {
  const { references } = stored.value!;
  const reference = references[shownReference.value] ?? references[0];
  return (
    <div class="board-tab">
      <References />
      <section class="zone-middle" aria-label={t("recipes.tab.board")}>
        {reference ? (
          <>
            <ZoneTools mayDraw={may("engineer")} />
            <ZoneBoard reference={reference} mayDraw={may("engineer")} />
            <GoodBoards reference={reference} />
          </>
        ) : (
          <p class="empty">{t("recipes.references.needed")}</p>
        )}
      </section>
      <ZoneList />
    </div>
  );
}
