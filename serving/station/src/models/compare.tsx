// Two versions side by side, figure by figure.

import { useLoaded } from "../figures/load";
import { Refusal } from "../refusal";
import { replaceQuery } from "../route";
import { number, t, time, told } from "../words";
import { comparisonOf } from "./calls";
import type { Comparison, Model } from "./wire";

export function Compare({ model, other }: { model: Model; other: Model }) {
  const { data, error } = useLoaded<Comparison>(comparisonOf(model.version, other.version));
  return (
    <section class="card compare" aria-label={t("models.compared")}>
      <div class="row">
        <h3>{t("models.compared")}</h3>
        <button type="button" class="link" aria-label={t("shell.close")} onClick={() => replaceQuery({})}>
          ×
        </button>
      </div>
      {error && <Refusal error={error} />}
      {data && <Rows model={model} other={other} rows={data.rows.filter(({ a, b }) => a !== b)} />}
      {data && data.rows.some(({ a, b }) => a === b) && (
        <details>
          <summary>{t("models.compared.same", { n: number(data.rows.filter(({ a, b }) => a === b).length) })}</summary>
          <Rows model={model} other={other} rows={data.rows.filter(({ a, b }) => a === b)} />
        </details>
      )}
    </section>
  );
}

function Rows({ model, other, rows }: { model: Model; other: Model; rows: Comparison["rows"] }) {
  if (rows.length === 0) return <p class="muted">{t("models.compared.none")}</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{t("models.figure")}</th>
          <Head model={model} />
          <Head model={other} />
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.figure}>
            <th scope="row">{told(row.figure)}</th>
            <td>
              <Value value={row.a} other={row.b} />
            </td>
            <td>
              <Value value={row.b} other={row.a} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Head({ model }: { model: Model }) {
  return (
    <th scope="col">
      {model.name} <code>{model.version}</code>
    </th>
  );
}

type Figure = number | string | null;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

/** Shares are drawn too; the longer bar is the greater of the two. */
function Value({ value, other }: { value: Figure; other: Figure }) {
  if (value === null) return <span class="muted">{"\u2013"}</span>;
  if (typeof value === "string") return <span>{MOMENT.test(value) ? time(value) : told(value)}</span>;
  const isShare = value >= 0 && value <= 1 && (typeof other !== "number" || (other >= 0 && other <= 1));
  return (
    <span class="value">
      {isShare && (
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect class="ground" width="100" height="8" />
          <rect class="value" width={100 * value} height="8" />
        </svg>
      )}
      <span class="number">{isShare ? number(value, 3) : number(value, Number.isInteger(value) ? 0 : 2)}</span>
    </span>
  );
}
