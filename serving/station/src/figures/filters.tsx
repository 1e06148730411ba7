// The choosers of figures and of the lot report: period and recipe, kept in the address.

import type { ComponentChildren } from "preact";
import { place, replaceQuery } from "../route";
import { language, t } from "../words";
import { useLoaded } from "./load";
import { dayText, PERIODS, periodOf, shiftStart, spanOf, type Period } from "./period";

export function ask(changes: Record<string, string>): void {
  const query = Object.fromEntries(place.value.query);
  const wanted = Object.entries({ ...query, ...changes }).filter(([, value]) => value !== "");
  replaceQuery(Object.fromEntries(wanted));
}

export function Filters({ children }: { children?: ComponentChildren }) {
  const query = place.value.query;
  const period = periodOf(query);
  const known = useLoaded<{ recipes: { name: string }[] }>("/v1/recipes").data?.recipes ?? [];
  const recipe = query.get("recipe") ?? "";
  const names = [...new Set([...known.map((one) => one.name), ...(recipe ? [recipe] : [])])].sort();
  return (
    <div class="filters">
      <div class="segments" role="group" aria-label={t("figures.period")}>
        {PERIODS.map((one) => (
          <button key={one} type="button" aria-pressed={one === period} onClick={() => choose(one)}>
            {t(`figures.period.${one}`)}
          </button>
        ))}
      </div>
      {period === "shift" && <span class="muted">{t("figures.shift_since", { time: clock(shiftStart(new Date())) })}</span>}
      {period === "free" && <Days />}
      <label>
        <span>{t("figures.recipe")}</span>
        <select value={recipe} onChange={(event) => ask({ recipe: event.currentTarget.value })}>
          <option value="">{t("figures.recipe.all")}</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {children}
    </div>
  );
}

function Days() {
  const query = place.value.query;
  const span = spanOf(query, new Date());
  const until = query.get("until") ?? "";
  return (
    <>
      <label>
        <span>{t("figures.from")}</span>
        <input
          type="date"
          value={dayText(span.since)}
          onChange={(event) => ask({ since: event.currentTarget.value })}
        />
      </label>
      <label>
        <span>{t("figures.to")}</span>
        <input
          type="date"
          value={until}
          min={dayText(span.since)}
          onChange={(event) => ask({ until: event.currentTarget.value })}
        />
      </label>
    </>
  );
}

function choose(period: Period): void {
  if (period === "free") ask({ period, since: dayText(spanOf(place.value.query, new Date()).since) });
  else ask({ period, since: "", until: "" });
}

function clock(time: Date): string {
  return time.toLocaleTimeString(language.value, { hour: "2-digit", minute: "2-digit", hour12: false });
}
