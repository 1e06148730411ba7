// Zones by name beside the picture, and the chosen one in numbers: all that the pointer does can be typed as well.

import { may } from "../session";
import { t } from "../words";
import { draft } from "./draft";
import type { Point } from "./wire";
import {
  choose,
  chosen,
  chosenZone,
  corner,
  kind,
  refused,
  removeChosen,
  rename,
  takeTool,
  tool,
  turnInto,
  typePolygon,
  zoneFault,
  type Kind,
  type Tool,
} from "./zone_state";
import { fit, zoom } from "./zone_view";

const TOOLS: { tool: Tool; key: string; icon: string }[] = [
  { tool: "select", key: "V", icon: "M5 3l13 7-6 1.6L9 18z" },
  { tool: "rectangle", key: "D", icon: "M4 6h16v12H4z" },
  { tool: "polygon", key: "G", icon: "M5 9l8-5 7 7-5 9-9-3z" },
];

export function ZoneTools({ mayDraw }: { mayDraw: boolean }) {
  return (
    <div class="zone-tools" role="toolbar" aria-label={t("recipes.zones.tools")}>
      {mayDraw &&
        TOOLS.map((one) => (
          <button
            key={one.tool}
            type="button"
            aria-pressed={tool.value === one.tool}
            title={t(`recipes.zones.tool.${one.tool}`)}
            onClick={() => takeTool(one.tool)}
          >
            <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true">
              <path d={one.icon} />
            </svg>
            <span>{t(`recipes.zones.tool.${one.tool}`)}</span> <kbd>{one.key}</kbd>
          </button>
        ))}
      {mayDraw && (
        <select
            aria-label={t("recipes.zones.kind")}
            value={kind.value}
            onChange={(event) => (kind.value = event.currentTarget.value as Kind)}
          >
            <option value="ignore">{t("recipes.zones.ignore.one")}</option>
            <option value="regions">{t("recipes.zones.regions.one")}</option>
        </select>
      )}
      <span class="zooms">
        <button type="button" aria-label={t("recipes.zones.zoom.out")} onClick={() => zoom(1 / 1.5)}>
          −
        </button>
        <button type="button" onClick={fit}>
          {t("recipes.zones.zoom.fit")}
        </button>
        <button type="button" aria-label={t("recipes.zones.zoom.in")} onClick={() => zoom(1.5)}>
          +
        </button>
      </span>
    </div>
  );
}

export function ZoneList() {
  const isEmpty = !draft.value.ignore.length && !draft.value.regions.length;
  return (
    <aside class="zone-list" aria-label={t("recipes.zones.title")}>
      <h2>{t("recipes.zones.title")}</h2>
      {isEmpty && <p class="muted">{t("recipes.zones.none")}</p>}
      {(["ignore", "regions"] as const).map((of) => (
        <Group key={of} of={of} />
      ))}
      <p class="refused" role="alert">
        {refused.value && t(refused.value)}
      </p>
      {chosenZone.value && <Details isFixed={!may("engineer")} />}
      {may("engineer") && (!chosenZone.value || tool.value !== "select") && <small class="zone-help">{t(`recipes.zones.help.${tool.value}`)}</small>}
    </aside>
  );
}

function Group({ of }: { of: Kind }) {
  const zones = draft.value[of];
  if (!zones.length) return null;
  return (
    <div>
      <h3 class={`zone-kind ${of}`}>{t(`recipes.zones.${of}`)}</h3>
      <ul>
        {zones.map((zone, index) => (
          <li key={index} data-bad={zoneFault(zone) !== null}>
            <button
              type="button"
              aria-pressed={chosen.value?.kind === of && chosen.value.index === index}
              onClick={() => choose({ kind: of, index })}
            >
              {zone.name || t("recipes.zones.unnamed")}
              <small>{t("recipes.zones.count", { n: zone.polygon.length })}</small>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Details({ isFixed }: { isFixed: boolean }) {
  const zone = chosenZone.value!;
  const set = (index: number, axis: 0 | 1, text: string) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value)) return;
    const point = [...zone.polygon[index]!] as Point;
    point[axis] = value;
    typePolygon(zone.polygon.with(index, point));
  };
  return (
    <fieldset class="zone-details" disabled={isFixed}>
      <label>
        {t("recipes.zones.name")}
        <input value={zone.name} maxLength={200} onInput={(event) => rename(event.currentTarget.value)} />
      </label>
      <label>
        {t("recipes.zones.kind")}
        <select value={chosen.value!.kind} onChange={(event) => turnInto(event.currentTarget.value as Kind)}>
          <option value="ignore">{t("recipes.zones.ignore.one")}</option>
          <option value="regions">{t("recipes.zones.regions.one")}</option>
        </select>
      </label>
      <div class="corners">
        {zone.polygon.map((point, index) => (
          <div key={index} data-chosen={corner.value === index} onFocusIn={() => (corner.value = index)}>
            {([0, 1] as const).map((axis) => (
              <input
                key={axis}
                type="number"
                step="any"
                value={point[axis]}
                aria-label={t(axis ? "recipes.zones.y" : "recipes.zones.x", { n: index + 1 })}
                onChange={(event) => {
                  set(index, axis, event.currentTarget.value);
                  event.currentTarget.value = String(chosenZone.value?.polygon[index]?.[axis] ?? "");
                }}
              />
            ))}
          </div>
        ))}
      </div>
      {!isFixed && (
        <button type="button" onClick={removeChosen}>
          {corner.value !== null && zone.polygon.length > 3 ? t("recipes.zones.remove.corner") : t("recipes.zones.remove")}
        </button>
      )}
    </fieldset>
  );
}
