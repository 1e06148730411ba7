// Versions of the model: what each is good for, which is in use where, and how a new class gets in.

import { JobsTab } from "../models/jobs";
import { VersionList } from "../models/list";
import { RetrainTab } from "../models/retrain";
import { find, isActive, jobs, load, models, trouble, useModels } from "../models/state";
import { VersionPage } from "../models/version";
import { Refusal } from "../refusal";
import { link, place } from "../route";
import { may } from "../session";
import { t } from "../words";
import "../models/models.css";
import "../models/figures.css";
import "../models/retrain.css";

const TABS = [
  { tab: "versions", role: "operator" },
  { tab: "new", role: "engineer" },
  { tab: "jobs", role: "operator" },
] as const;

export function Models() {
  useModels();
  const { subject, query } = place.value;
  if (!models.value) return trouble.value ? <Trouble /> : <p class="empty">{t("shell.loading")}</p>;
  const tabs = TABS.filter(({ role }) => may(role)).map(({ tab }) => tab);
  const tab = tabs.find((one) => one === query.get("tab")) ?? "versions";
  const running = jobs.value.filter(isActive).length;
  return (
    <div class="models">
      <div class="models-head">
        <h1>{t("models.title")}</h1>
        <nav class="tabs" aria-label={t("models.parts")}>
          {tabs.map((one) => (
            <a key={one} href={link("models", "", one === "versions" ? {} : { tab: one })} aria-current={one === tab ? "page" : undefined}>
              {t(`models.tab.${one}`)}
              {one === "jobs" && running > 0 && <span class="running">{running}</span>}
            </a>
          ))}
        </nav>
        {trouble.value && <Refusal error={trouble.value} />}
      </div>
      {tab === "versions" && <Versions asked={subject} />}
      {tab === "new" && <RetrainTab />}
      {tab === "jobs" && <JobsTab chosen={query.get("job") ?? ""} />}
    </div>
  );
}

function Versions({ asked }: { asked: string }) {
  const all = models.value!;
  const shown = asked ? find(asked) : (all.find((model) => model.is_default) ?? all[0]);
  return (
    <div class="versions">
      <VersionList models={all} shown={shown?.version ?? ""} />
      {shown && <VersionPage key={shown.version} model={shown} />}
      {!shown && <p class="empty">{asked ? t("models.unknown", { version: asked }) : t("models.none")}</p>}
    </div>
  );
}

function Trouble() {
  return (
    <p class="empty" role="alert">
      {trouble.value!.message} {trouble.value!.hint}{" "}
      <button type="button" onClick={() => void load()}>
        {t("shell.retry")}
      </button>
    </p>
  );
}
