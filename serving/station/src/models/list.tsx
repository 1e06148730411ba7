// All versions, each under the one that it was made from.

import { link } from "../route";
import { may } from "../session";
import { number, t, time, told } from "../words";
import { changed, lineage } from "./lineage";
import { find } from "./state";
import type { Model } from "./wire";

const DEEPEST = 4;

export function VersionList({ models, shown }: { models: Model[]; shown: string }) {
  return (
    <section class="version-list" aria-label={t("models.versions")}>
      <ul>
        {lineage(models).map(({ model, depth }) => (
          <li key={model.version} style={{ "--depth": Math.min(depth, DEEPEST) }} data-child={depth > 0}>
            <Row model={model} isShown={model.version === shown} />
          </li>
        ))}
      </ul>
      {may("engineer") && (
        <a class="button new" href={link("models", "", { tab: "new" })}>
          {t("models.teach")}
        </a>
      )}
    </section>
  );
}

function Row({ model, isShown }: { model: Model; isShown: boolean }) {
  const { added, gone } = changed(model, find(model.parent));
  const news = [...added.map((label) => `+ ${label}`), ...gone.map((label) => `\u2212 ${label}`)];
  return (
    <a class="version" href={link("models", model.version)} aria-current={isShown ? "true" : undefined} data-stage={model.stage}>
      <span class="line">
        <strong>{model.name}</strong>
        <StageChip model={model} />
      </span>
      <span class="line">
        <code>{model.version}</code>
        <small>{news.length ? news.join(", ") : t("models.classes.count", { n: number(model.classes.length) })}</small>
      </span>
      <small class="line">
        <span>{t("models.by", { who: model.actor ? told(model.actor) : t("recipes.somebody") })}</span>
        <time dateTime={model.added}>{time(model.added)}</time>
      </small>
      {model.recipes.length > 0 && <small class="uses">{t("models.used", { recipes: model.recipes.join(", ") })}</small>}
    </a>
  );
}

export function StageChip({ model }: { model: Model }) {
  return (
    <span class="stage-chip" data-stage={model.stage}>
      {t(`models.stage.${model.stage}`)}
    </span>
  );
}
