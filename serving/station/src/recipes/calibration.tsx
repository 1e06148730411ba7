// The calibration that is stored with the recipe: what it promises, and where it comes from.

import { useRef } from "preact/hooks";
import { notify } from "../notices";
import { number, t, time } from "../words";
import { change, draft } from "./draft";
import type { Calibration } from "./wire";

export function CalibrationCard({ isFixed }: { isFixed: boolean }) {
  const file = useRef<HTMLInputElement>(null);
  const { calibration } = draft.value;

  async function take(chosen: File | undefined) {
    if (!chosen) return;
    try {
      const read = JSON.parse(await chosen.text()) as Calibration;
      if (!read || typeof read.thresholds !== "object" || !Array.isArray(read.claims)) throw new SyntaxError();
      change({ calibration: read });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      notify(t("recipes.calibration.bad", { name: chosen.name }), "error");
    }
  }

  return (
    <section class="card">
      <h2>{t("recipes.calibration")}</h2>
      {calibration ? <Told calibration={calibration} /> : <p class="muted">{t("recipes.calibration.none")}</p>}
      {!isFixed && (
        <div class="row">
          <input
            ref={file}
            type="file"
            accept=".json,application/json"
            class="unseen"
            tabIndex={-1}
            aria-label={t("recipes.calibration.load")}
            onChange={(event) => {
              void take(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
          <button type="button" onClick={() => file.current?.click()}>
            {t("recipes.calibration.load")}
          </button>
          {calibration && (
            <button type="button" onClick={() => change({ calibration: null })}>
              {t("recipes.calibration.remove")}
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function Told({ calibration }: { calibration: Calibration }) {
  return (
    <>
      <p>
        {t("recipes.calibration.told", {
          when: time(calibration.date),
          n: calibration.num_boards,
          model: calibration.model_version,
          camera: calibration.camera ?? t("recipes.camera.none"),
        })}
      </p>
      <ul class="claims">
        {calibration.claims.map((claim) => (
          <li key={claim.words} data-kept={claim.kept}>
            {claim.words}
          </li>
        ))}
      </ul>
      <dl class="thresholds">
        {Object.entries(calibration.thresholds).map(([label, threshold]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{number(threshold, 3)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
