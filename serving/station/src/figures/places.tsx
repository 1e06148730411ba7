// Where on the board calls lie: a heat map over the golden reference.

import { useSignal } from "@preact/signals";
import { number, t } from "../words";
import { ask } from "./filters";
import { gridOf, shade, type Grid } from "./grid";
import { useLoaded } from "./load";
import { Behind, Panel } from "./plot";
import type { RecipeReport, Spot, Stats } from "./types";

const SHOWN = ["all", "real", "false_call"] as const;
type Shown = (typeof SHOWN)[number];
const SHADES = 5;
// As large as it is shown on a dense screen; a board may have 16000 px and be a TIFF.
const PICTURE_PX = 1600;
const MOST_ROWS = 20;

export function Places({ stats }: { stats: Stats }) {
  const shown = useSignal<Shown>("all");
  const chosen = useSignal("");
  if (stats.recipe === null) return <ChooseRecipe />;
  const reference = stats.references.find((one) => one.name === chosen.value) ?? stats.references[0];
  const spots = stats.places.filter((spot) => shown.value === "all" || spot.word === shown.value);
  const here = reference ? spots.filter((spot) => spot.reference === reference.name) : [];
  return (
    <Panel
      name={t("figures.places")}
      kind="places"
      actions={
        <div class="segments" role="group" aria-label={t("figures.places.which")}>
          {SHOWN.map((one) => (
            <button key={one} type="button" aria-pressed={shown.value === one} onClick={() => (shown.value = one)}>
              {t(`figures.places.${one}`)}
            </button>
          ))}
        </div>
      }
    >
      {stats.references.length > 1 && (
        <select
          aria-label={t("figures.places.reference")}
          value={reference?.name}
          onChange={(event) => (chosen.value = event.currentTarget.value)}
        >
          {stats.references.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
      )}
      {reference ? (
        <Heat recipe={stats.recipe} reference={reference} spots={here} />
      ) : (
        <p class="empty">{t("figures.places.no_reference")}</p>
      )}
      <Left all={spots.length} here={here.length} listed={stats.places.length} known={stats.num_places} />
    </Panel>
  );
}

interface HeatProps {
  recipe: string;
  reference: { name: string; width: number; height: number };
  spots: Spot[];
}

function Heat({ recipe, reference, spots }: HeatProps) {
  const { width, height } = reference;
  const grid = gridOf(spots, reference);
  const most = grid.cells[0]?.count ?? 0;
  const stored = useLoaded<RecipeReport>(`/v1/recipes/${encodeURIComponent(recipe)}`).data;
  const picture = stored?.references.find((one) => one.name === reference.name)?.picture;
  return (
    <>
      <svg
        class="heat"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={t("figures.places.summary", { n: number(spots.length), cells: number(grid.cells.length) })}
      >
        <rect class="board" width={width} height={height} />
        {picture && <image href={`${picture}&longest=${PICTURE_PX}`} width={width} height={height} preserveAspectRatio="none" />}
        {grid.cells.map((cell) => (
          <rect
            key={`${cell.column},${cell.row}`}
            class={`shade-${shade(cell.count, most, SHADES)}`}
            x={cell.column * grid.cell_px}
            y={cell.row * grid.cell_px}
            width={grid.cell_px}
            height={grid.cell_px}
          >
            <title>{t("figures.places.cell", { n: number(cell.count), label: cell.label })}</title>
          </rect>
        ))}
      </svg>
      {most > 0 && (
        <p class="keys shades" aria-hidden="true">
          {number(1)}
          {Array.from({ length: SHADES }, (_, step) => (
            <i key={step} class={`swatch shade-${step}`} />
          ))}
          {t("figures.places.most", { n: number(most) })}
        </p>
      )}
      <Behind
        name={t("figures.places")}
        head={[t("figures.places.where"), t("figures.calls"), t("figures.class")]}
        rows={grid.cells.slice(0, MOST_ROWS).map((cell) => [middle(cell, grid), number(cell.count), cell.label])}
      />
    </>
  );
}

function middle({ column, row }: { column: number; row: number }, { cell_px }: Grid): string {
  return `${Math.round((column + 0.5) * cell_px)}, ${Math.round((row + 0.5) * cell_px)} px`;
}

function Left({ all, here, listed, known }: { all: number; here: number; listed: number; known: number }) {
  return (
    <>
      {all > here && <p class="muted">{t("figures.places.elsewhere", { n: number(all - here) })}</p>}
      {known > listed && <p class="muted">{t("figures.places.newest", { n: number(listed), all: number(known) })}</p>}
    </>
  );
}

function ChooseRecipe() {
  const recipes = useLoaded<{ recipes: { name: string }[] }>("/v1/recipes").data?.recipes ?? [];
  return (
    <Panel name={t("figures.places")} kind="places">
      <div class="empty">
        <p>{t(recipes.length > 0 ? "figures.places.choose" : "figures.places.no_recipe")}</p>
        <p class="choices">
          {recipes.slice(0, 8).map(({ name }) => (
            <button key={name} type="button" onClick={() => ask({ recipe: name })}>
              {name}
            </button>
          ))}
        </p>
      </div>
    </Panel>
  );
}
