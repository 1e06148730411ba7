// A lower threshold for one class of a recipe: proposed here, judged by the service on reviewed boards.

import { useSignal } from "@preact/signals";
import { ApiError, send } from "../api";
import { Dialog } from "../dialog";
import { percent } from "../figures/format";
import { Refusal, sentence } from "../refusal";
import { link } from "../route";
import { number, t, told } from "../words";
import type { Spot } from "./spot";

interface Point {
  threshold: number;
  misses: number;
  false_calls: number;
  miss_bound: number | null;
}

interface Answer {
  recipe: string;
  revision: number;
  label: string;
  points: { before: Point; after: Point };
  claim: { words: string } | null;
  gate: {
    boards: number;
    boards_newly_missed: number;
    boards_newly_found: number;
    num_good_boards: number;
    boards_newly_called: number;
    bound: number | null;
    words: string[];
  };
}

interface Props {
  recipe: string;
  classes: Spot["classes"];
  /** The class that is proposed first. */
  first: Spot["classes"][number];
  serial: string;
  onClose: () => void;
}

export function ThresholdDialog({ recipe, classes, first, serial, onClose }: Props) {
  const label = useSignal(first.label);
  const threshold = useSignal(first.needed!);
  const reason = useSignal(t("escape.reason.first", { serial }));
  const isAccepted = useSignal(false);
  const isBusy = useSignal(false);
  const refusal = useSignal<ApiError | null>(null);
  const answer = useSignal<Answer | null>(null);
  const now = classes.find((one) => one.label === label.value)!;

  async function propose(event: Event) {
    event.preventDefault();
    isBusy.value = true;
    refusal.value = null;
    try {
      answer.value = await send<Answer>("POST", `/v1/recipes/${encodeURIComponent(recipe)}/thresholds`, {
        label: label.value,
        threshold: threshold.value,
        reason: reason.value.trim(),
        accept_false_calls: isAccepted.value,
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusal.value = error;
    } finally {
      isBusy.value = false;
    }
  }

  if (answer.value) return <Stored answer={answer.value} onClose={onClose} />;
  return (
    <Dialog title={t("escape.threshold.title", { recipe })} onClose={onClose}>
      <form class="threshold" onSubmit={(event) => void propose(event)}>
        <p class="muted">{t("escape.threshold.words")}</p>
        <label>
          {t("escape.threshold.class")}
          <select
            value={label.value}
            onChange={(event) => {
              label.value = event.currentTarget.value;
              threshold.value = classes.find((one) => one.label === label.value)!.needed!;
            }}
          >
            {classes
              .filter(({ needed }) => needed !== null)
              .map((one) => (
                <option key={one.label}>{one.label}</option>
              ))}
          </select>
        </label>
        <label>
          {t("escape.threshold.value", { now: number(now.threshold, 3) })}
          <input
            type="number"
            min="0.0001"
            max="0.9999"
            step="any"
            required
            value={threshold.value}
            onInput={(event) => (threshold.value = event.currentTarget.valueAsNumber)}
          />
        </label>
        <label>
          {t("models.reason.needed")}
          <textarea rows={2} maxLength={2000} required value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={isAccepted.value} onChange={(event) => (isAccepted.value = event.currentTarget.checked)} />
          {t("escape.threshold.accept")}
        </label>
        <div aria-live="polite">
          {isBusy.value && <p class="muted">{t("escape.threshold.busy")}</p>}
          {refusal.value && (
            <div class="refusal">
              <strong>{t("escape.threshold.refused")}</strong>
              <Refusal error={refusal.value} />
            </div>
          )}
        </div>
        <div class="choices">
          <button type="submit" class="primary" disabled={isBusy.value || !reason.value.trim() || !(threshold.value > 0 && threshold.value < 1)}>
            {t("escape.threshold.go")}
          </button>
          <button type="button" onClick={onClose}>
            {t("shell.cancel")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Stored({ answer: { recipe, revision, label, points, claim, gate }, onClose }: { answer: Answer; onClose: () => void }) {
  const rows = [
    { name: t("recipes.curve.threshold"), of: ({ threshold }: Point) => number(threshold, 3) },
    { name: t("recipes.curve.misses"), of: ({ misses }: Point) => number(misses) },
    { name: t("recipes.curve.false_calls"), of: ({ false_calls }: Point) => number(false_calls) },
    { name: t("recipes.curve.bound"), of: ({ miss_bound }: Point) => percent(miss_bound) },
  ];
  return (
    <Dialog title={t("escape.threshold.stored", { label, recipe, n: revision })} onClose={onClose}>
      <table class="stored">
        <thead>
          <tr>
            <td />
            <th scope="col">{t("models.before")}</th>
            <th scope="col">{t("models.after")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, of }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{of(points.before)}</td>
              <td>{of(points.after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {gate.words.map((words) => (
        <p key={words}>{sentence(told(words))}</p>
      ))}
      {claim && <p class="muted">{told(claim.words)}</p>}
      <div class="choices">
        <a class="button" href={link("recipes", recipe, { tab: "revisions" })}>
          {t("escape.threshold.recipe")}
        </a>
        <button type="button" class="primary" onClick={onClose}>
          {t("shell.close")}
        </button>
      </div>
    </Dialog>
  );
}
