// Figures of the line: how many boards are good, what is called in vain, what escapes.

import { useEffect, useState } from "preact/hooks";
import { address } from "../api";
import { day, days } from "../figures/format";
import { Filters } from "../figures/filters";
import { TestImport } from "../figures/import";
import { useLoaded } from "../figures/load";
import { Pareto } from "../figures/pareto";
import { bucketOf, spanOf } from "../figures/period";
import { Places } from "../figures/places";
import { Tiles } from "../figures/tiles";
import { Trend } from "../figures/trend";
import type { Stats } from "../figures/types";
import { link, place } from "../route";
import { t } from "../words";
import "../figures/figures.css";

const EVERY_MS = 60_000;

export function Figures() {
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((one) => one + 1);
  useEffect(() => {
    // Shown on a screen at the line, the figures follow it.
    const timer = setInterval(() => document.hidden || again(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const query = place.value.query;
  const now = new Date();
  const span = spanOf(query, now);
  const asked = {
    since: span.since.toISOString(),
    until: span.until?.toISOString(),
    recipe: query.get("recipe"),
    bucket: bucketOf(span, now),
  };
  const { data, error, isLoading } = useLoaded<Stats>(address("/v1/stats", asked), turn);
  return (
    <div class="figures" aria-busy={isLoading}>
      <div class="bar-top">
        <h1>{t("figures.title")}</h1>
        <p class="only-print">{days(span.since, span.until ?? now)}</p>
        <Filters>
          <span class="actions">
            <a class="button" href={address("/v1/stats.csv", asked)} download="figures.csv">
              {t("figures.csv")}
            </a>
            <a class="button" href={link("lot", "", Object.fromEntries(query))}>
              {t("figures.lot")}
            </a>
            <button type="button" onClick={() => print()}>
              {t("figures.print")}
            </button>
          </span>
        </Filters>
      </div>
      {error && (
        <div class="card" role="alert">
          <p class="failed">{error.message}</p>
          <p class="muted">{error.hint}</p>
          <button type="button" onClick={again}>
            {t("shell.retry")}
          </button>
        </div>
      )}
      {!data && !error && <p class="empty">{t("shell.loading")}</p>}
      {data && <Dashboard stats={data} again={again} />}
    </div>
  );
}

function Dashboard({ stats, again }: { stats: Stats; again: () => void }) {
  const { boards } = stats;
  const isEmpty = boards.inspected + boards.not_inspected + boards.challenge === 0;
  const since = new Date(stats.since);
  return (
    <>
      {new Date(stats.asked_since) < since && <p class="notice">{t("figures.deleted", { day: day(since) })}</p>}
      {isEmpty ? (
        <div class="card empty">
          <h2>{t("figures.empty")}</h2>
          <p>{t("figures.empty.hint")}</p>
          <p>
            <a href={link("inspect")}>{t("figures.empty.inspect")}</a>
          </p>
        </div>
      ) : (
        <Tiles stats={stats} />
      )}
      {!isEmpty && (
        <div class="plots">
          <div class="column">
            <Trend stats={stats} />
            <Places stats={stats} />
          </div>
          <div class="column">
            <Pareto name={t("figures.by_class")} of={t("figures.class")} lines={stats.by_label} nameless="" />
            <Pareto
              name={t("figures.by_recipe")}
              of={t("figures.recipe")}
              lines={stats.by_recipe}
              nameless={t("figures.recipe.none")}
            />
            <TestImport onImported={again} />
          </div>
        </div>
      )}
      {isEmpty && <TestImport onImported={again} />}
    </>
  );
}
