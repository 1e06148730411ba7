// One version: what it knows, how it was proven, where it is used, and what can be done with it.

import { useLoaded } from "../figures/load";
import { sentence } from "../refusal";
import { link, place, replaceQuery } from "../route";
import { may } from "../session";
import { t, time, told } from "../words";
import { Actions } from "./actions";
import { jobOf } from "./calls";
import { Compare } from "./compare";
import { GateCard } from "./gate";
import { changed } from "./lineage";
import { StageChip } from "./list";
import { Progress } from "./progress";
import { ShadowCard } from "./shadow";
import { find, isActive, isInUse, jobs, models } from "./state";
import { BeforeAfterCard } from "./table";
import type { Deed, Job, Model } from "./wire";

export function VersionPage({ model }: { model: Model }) {
  const other = place.value.query.get("with");
  const promotion = jobs.value.find((job) => job.kind === "promote" && job.request.version === model.version);
  return (
    <section class="version-page" aria-label={`${model.name} ${model.version}`}>
      <header class="version-head">
        <div>
          <h2>
            {model.name} <code>{model.version}</code> <StageChip model={model} />
          </h2>
          <Lead model={model} />
        </div>
        <div class="deeds">
          <CompareWith model={model} other={other} />
          {may("engineer") && <Actions model={model} isBusy={!!promotion && isActive(promotion)} />}
        </div>
      </header>
      {promotion && <Promotion job={promotion} />}
      {model.overrides.map((deed) => (
        <Override key={deed.recipe ?? ""} deed={deed} />
      ))}
      {model.refused && (
        <div class="card promotion" data-state="failed" role="status">
          <strong>{t("models.refused")}</strong>
          <p>{sentence(told(model.refused))}</p>
        </div>
      )}
      {other && find(other) && <Compare model={model} other={find(other)!} />}
      <div class="version-cards">
        {model.report && <BeforeAfterCard table={model.report} />}
        <NewestGate model={model} promotion={promotion} />
        <Classes model={model} />
        {(model.stage === "candidate" || model.stage === "shadow") && <ShadowCard model={model} />}
        <History deeds={model.history} />
      </div>
    </section>
  );
}

function Lead({ model }: { model: Model }) {
  const parent = find(model.parent);
  return (
    <p class="muted">
      {t("models.added", { who: model.actor ? told(model.actor) : t("recipes.somebody"), when: time(model.added) })}{" "}
      {model.parent && (
        <>
          {t("models.from")} {parent ? <a href={link("models", parent.version)}>{parent.name}</a> : <code>{model.parent}</code>}
        </>
      )}
    </p>
  );
}

/** What of the gate is going on, or why it was refused. */
function Promotion({ job }: { job: Job }) {
  const where = job.request.recipe ? t("models.promote.one", { recipe: job.request.recipe }) : t("models.promote.all");
  if (isActive(job)) {
    return (
      <div class="card promotion" aria-live="polite">
        <strong>{t("models.promoting", { where })}</strong>
        <Progress job={job} />
      </div>
    );
  }
  if (job.result?.is_promoted) return null;
  return (
    <div class="card promotion" data-state={job.state} role="status">
      <strong>{t(job.state === "cancelled" ? "models.promotion.cancelled" : "models.promotion.refused", { where })}</strong>
      {job.reason && !job.result?.gate_result && <p>{sentence(told(job.reason))}</p>}
    </div>
  );
}

/** It is in production although the gate did not pass: who decided that, and why. */
function Override({ deed }: { deed: Deed }) {
  const where = deed.recipe ? t("models.promote.one", { recipe: deed.recipe }) : t("models.promote.all");
  return (
    <div class="card promotion" data-state="override" role="status">
      <strong>{t("models.overridden", { where })}</strong>
      <p>
        {deed.actor ? told(deed.actor) : t("recipes.somebody")}, {time(deed.at)}: {sentence(deed.reason)}
      </p>
    </div>
  );
}

/** Of the newest try to promote it; else of the promotion that went through. */
function NewestGate({ model, promotion }: { model: Model; promotion: Job | undefined }) {
  const isMeasured = promotion?.result?.gate_result != null;
  const { data } = useLoaded<Job>(isMeasured ? jobOf(promotion!.id) : null);
  return <GateCard gate={data?.result?.gate ?? model.gate} isInUse={isInUse(model)} />;
}

function CompareWith({ model, other }: { model: Model; other: string | null }) {
  const others = models.value!.filter(({ version }) => version !== model.version);
  if (!others.length) return null;
  return (
    <select
      aria-label={t("models.compare")}
      value={other ?? ""}
      onChange={(event) => replaceQuery(event.currentTarget.value ? { with: event.currentTarget.value } : {})}
    >
      <option value="">{t("models.compare")}</option>
      {others.map(({ name, version }) => (
        <option key={version} value={version}>
          {name} {version}
        </option>
      ))}
    </select>
  );
}

function Classes({ model }: { model: Model }) {
  const { added, gone } = changed(model, find(model.parent));
  return (
    <section class="card about" aria-label={t("models.about")}>
      <h3>{t("models.classes")}</h3>
      <p class="chips">
        {model.classes.map((label) => (
          <span key={label} class={added.includes(label) ? "chip new" : "chip"}>
            {label}
            {added.includes(label) && <small>{t("models.new")}</small>}
          </span>
        ))}
        {gone.map((label) => (
          <span key={label} class="chip gone">
            <s>{label}</s>
          </span>
        ))}
      </p>
      <dl>
        <dt>{t("models.uses")}</dt>
        <dd>
          {model.is_default && <span class="default">{t("models.uses.default")}</span>}
          {model.recipes.map((name) => (
            <a key={name} href={link("recipes", name)}>
              {name}
            </a>
          ))}
          {!model.is_default && model.recipes.length === 0 && t("models.uses.none")}
        </dd>
        <dt>{t("models.reference")}</dt>
        <dd>{t(model.needs_reference ? "models.reference.needed" : "models.reference.free")}</dd>
        <dt>{t("models.data")}</dt>
        <dd>{model.data_fingerprint ? <code>{model.data_fingerprint}</code> : t("models.notsaid")}</dd>
        <dt>{t("models.code")}</dt>
        <dd>{model.git_revision ? <code>{model.git_revision}</code> : t("models.notsaid")}</dd>
        <dt>{t("models.memory")}</dt>
        <dd>{t(model.loaded ? "models.memory.yes" : "models.memory.no")}</dd>
      </dl>
    </section>
  );
}

function History({ deeds }: { deeds: Deed[] }) {
  return (
    <section class="card history" aria-label={t("models.history")}>
      <h3>{t("models.history")}</h3>
      {deeds.length === 0 && <p class="muted">{t("models.history.none")}</p>}
      <ol>
        {[...deeds]
          .sort((one, other) => other.at.localeCompare(one.at))
          .map((deed, index) => (
            <li key={index}>
              <strong>{t(`models.deed.${deed.deed}`)}</strong>
              {deed.override && <span class="chip override">{t("models.override")}</span>}
              <small>
                {[deed.recipe, deed.actor ? told(deed.actor) : t("recipes.somebody"), time(deed.at)].filter(Boolean).join(" \u00b7 ")}
              </small>
              {deed.reason && <p>{told(deed.reason)}</p>}
            </li>
          ))}
      </ol>
    </section>
  );
}
