// One answer, for whoever has no board page: verdict in words, and the board with its calls drawn on it.

import type { Report } from "../types";
import { number, t, told } from "../words";

const MOST_CALLS = 30;

export function Answer({ report }: { report: Report }) {
  const notes = [...report.reasons, ...report.warnings, ...report.intake.warnings];
  return (
    <div class="answer">
      <img src={report.links.overlay} alt={t("inspect.answer.overlay")} loading="lazy" />
      <div>
        {notes.map((note) => (
          <p key={note}>{told(note)}</p>
        ))}
        <h3>{t("inspect.answer.calls")}</h3>
        {report.defects.length === 0 && <p class="muted">{t("inspect.answer.none")}</p>}
        <ol>
          {report.defects.slice(0, MOST_CALLS).map((defect) => (
            <li key={defect.id}>
              {defect.label} <small>{number(defect.score, 2)}</small>
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}
