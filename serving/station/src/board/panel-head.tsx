// What the service says of the board as a whole: verdict, reasons, warnings, how it was compared, what is promised.

import { age } from "../queue/age";
import { items } from "../queue/list";
import type { Report } from "../types";
import { number, t, time, told } from "../words";

interface Calibration {
  valid: boolean;
  void_because: string[];
  claims: { kept: boolean; words: string }[];
}

export function Head({ report }: { report: Report }) {
  const about = [report.recipe ?? t("queue.norecipe"), report.attempt && t("queue.attempt", { n: report.attempt })];
  const warnings = [...report.intake.warnings, ...report.warnings];
  const isAudit = items.value.some(({ id, audit }) => id === report.id && audit);
  return (
    <header class="head">
      <div class="row">
        <span class={`verdict ${report.verdict}`}>{report.verdict}</span>
        <h2 title={report.serial ?? undefined}>{report.serial ?? t("queue.noserial", { id: report.id.slice(-6) })}</h2>
        {isAudit && <span class="chip audit">{t("queue.audit")}</span>}
        <time class="muted" dateTime={report.created} title={time(report.created)}>
          {age(report.created)}
        </time>
      </div>
      {report.verdict === "ERROR" && <strong class="warn">{t("review.notinspected")}</strong>}
      <ul class="reasons">
        {report.reasons.map((reason) => (
          <li key={reason}>{told(reason)}</li>
        ))}
      </ul>
      <details>
        <summary>
          {about.filter(Boolean).join(" \u00b7 ")}
          {warnings.length > 0 && <span class="warn">{t("review.warnings", { n: warnings.length })}</span>}
        </summary>
        <ul class="warnings">
          {warnings.map((warning) => (
            <li key={warning}>{told(warning)}</li>
          ))}
        </ul>
        <dl>
          <dt>{t("review.reference")}</dt>
          <dd>{reference(report)}</dd>
          <dt>{t("review.guarantee")}</dt>
          <dd>{guarantee(report.calibration as Calibration | null)}</dd>
          <dt>{t("queue.model")}</dt>
          <dd>
            {report.model.name} {report.model.version}
          </dd>
          <dt>{t("review.picture")}</dt>
          <dd>{t("review.px", { width: number(report.image.width), height: number(report.image.height) })}</dd>
          {report.serial && (
            <>
              <dt>{t("queue.serial")}</dt>
              <dd>{report.serial}</dd>
            </>
          )}
          <dt>{t("review.time")}</dt>
          <dd>{time(report.created)}</dd>
        </dl>
      </details>
    </header>
  );
}

function reference({ reference: laid }: Report): string {
  if (!laid) return t("review.reference.none");
  const name = laid.name ? `${laid.name}: ` : "";
  const { shift_px: shift, residual_px: left } = laid;
  if (shift === null || left === null) return `${name}${laid.note || t("review.reference.unknown")}`;
  return `${name}${t("review.reference.laid", { shift: number(shift, 1), left: number(left, 2) })}`;
}

function guarantee(calibration: Calibration | null): string {
  if (!calibration) return t("review.guarantee.none");
  if (!calibration.valid) return t("review.guarantee.void", { why: calibration.void_because.map(told).join("; ") });
  const kept = calibration.claims.filter((claim) => claim.kept);
  return kept.length ? kept.map(({ words }) => told(words)).join("; ") : t("review.guarantee.unkept");
}
