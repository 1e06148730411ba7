// A candidate beside production: on a share of the boards, where nobody waits for it, and where the two disagree.

import { useSignal } from "@preact/signals";
import { useLoaded } from "../figures/load";
import { notify, notifyError } from "../notices";
import { Refusal } from "../refusal";
import { link } from "../route";
import { may } from "../session";
import { number, t } from "../words";
import { setShadow, shadowOf } from "./calls";
import { load } from "./state";
import type { Model, Shadow } from "./wire";

const STEP = 5;

export function ShadowCard({ model }: { model: Model }) {
  const turn = useSignal(0);
  const { data, error } = useLoaded<Shadow>(shadowOf(model.version), turn.value);
  return (
    <section class="card shadow" aria-label={t("models.shadow")}>
      <h3>{t("models.shadow")}</h3>
      <p class="muted">{t("models.shadow.words")}</p>
      {error && <Refusal error={error} />}
      {data && may("engineer") && <Share key={data.share} model={model} share={data.share} done={() => (turn.value += 1)} />}
      {data && !may("engineer") && <p>{t("models.shadow.share.now", { share: number(100 * data.share) })}</p>}
      {data && <Seen shadow={data} again={() => (turn.value += 1)} />}
    </section>
  );
}

function Share({ model, share, done }: { model: Model; share: number; done: () => void }) {
  const wanted = useSignal(Math.round(100 * share));
  const isBusy = useSignal(false);
  const store = async () => {
    isBusy.value = true;
    try {
      await setShadow(model.version, wanted.value / 100, null);
      notify(wanted.value ? t("models.shadow.set", { share: wanted.value }) : t("models.shadow.ended"));
      void load();
      done();
    } catch (error) {
      notifyError(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <div class="share">
      <label>
        {t("models.shadow.share")}
        <input
          type="range"
          min="0"
          max="100"
          step={STEP}
          value={wanted}
          aria-valuetext={t("models.shadow.percent", { share: wanted.value })}
          onInput={(event) => (wanted.value = event.currentTarget.valueAsNumber)}
        />
      </label>
      <output>{t("models.shadow.percent", { share: wanted.value })}</output>
      <button type="button" disabled={isBusy.value || wanted.value === Math.round(100 * share)} onClick={() => void store()}>
        {t(wanted.value === 0 && share > 0 ? "models.shadow.end" : "models.shadow.start")}
      </button>
    </div>
  );
}

function Seen({ shadow, again }: { shadow: Shadow; again: () => void }) {
  const { share, boards, skipped, disagreements, num_disagreements } = shadow;
  if (share === 0 && boards === 0) return null;
  return (
    <>
      <div class="row">
        <p>{t("models.shadow.boards", { n: number(boards), skipped: number(skipped) })}</p>
        <button type="button" class="link" onClick={again}>
          {t("models.shadow.again")}
        </button>
      </div>
      {disagreements.length === 0 ? (
        boards > 0 && <p class="muted">{t("models.shadow.agree")}</p>
      ) : (
        <table>
          <caption>{t("models.shadow.disagreements", { n: number(num_disagreements), of: number(boards) })}</caption>
          <thead>
            <tr>
              <th scope="col">{t("models.shadow.board")}</th>
              <th scope="col">{t("models.shadow.production")}</th>
              <th scope="col">{t("models.shadow.candidate")}</th>
            </tr>
          </thead>
          <tbody>
            {disagreements.map(({ inspection, serial, production, candidate }) => (
              <tr key={inspection}>
                <th scope="row">
                  <a href={link("board", inspection)}>
                    <img src={`/v1/inspections/${inspection}/thumbnail`} alt="" loading="lazy" />
                    {serial ?? t("queue.noserial", { id: inspection.slice(-6) })}
                  </a>
                </th>
                <Said {...production} />
                <Said {...candidate} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Said({ verdict, labels }: Shadow["disagreements"][number]["production"]) {
  return (
    <td>
      <span class={`verdict ${verdict}`}>{verdict}</span> <small>{labels.join(", ")}</small>
    </td>
  );
}
