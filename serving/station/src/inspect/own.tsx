// The latest inspections that a line's key made: of the others it sees none.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { address, request } from "../api";
import { notifyError } from "../notices";
import type { Report } from "../types";
import { t, time } from "../words";
import { Answer } from "./answer";

/** `after`: how many boards this batch has finished; each is a reason to look again. */
export function OwnInspections({ after, isShort }: { after: number; isShort: boolean }) {
  const found = useSignal<Report[] | null>(null);
  const open = useSignal<string | null>(null);
  useEffect(() => {
    request<{ inspections: Report[] }>(address("/v1/inspections", { limit: 20 })).then(
      (page) => (found.value = page.inspections),
      notifyError,
    );
  }, [after]);
  if (!found.value) return null;
  return (
    <section class="own" data-short={isShort} aria-labelledby="own-title">
      <h2 id="own-title">{t("inspect.own")}</h2>
      {found.value.length === 0 && <p class="muted">{t("inspect.own.none")}</p>}
      <ul>
        {found.value.map((report) => (
          <li key={report.id}>
            <button
              type="button"
              class="own-line"
              aria-expanded={open.value === report.id}
              onClick={() => (open.value = open.value === report.id ? null : report.id)}
            >
              <span class={`verdict ${report.verdict}`}>{report.verdict}</span>
              <strong>{report.serial ?? t("inspect.own.noserial")}</strong>
              <span>
                {t("inspect.calls", { n: report.num_defects ?? 0 })}
              </span>
              <small>{time(report.created)}</small>
            </button>
            {open.value === report.id && <Answer report={report} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
