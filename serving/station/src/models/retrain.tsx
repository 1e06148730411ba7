// A class that the model does not know yet: which one, from which examples, on top of what; then the job starts.

import { useComputed, useSignal } from "@preact/signals";
import { ApiError } from "../api";
import { useLoaded } from "../figures/load";
import { Refusal } from "../refusal";
import { go, place } from "../route";
import { number, t } from "../words";
import { examplesOf, startRetraining } from "./calls";
import { ExampleCrops } from "./examples";
import { RetrainForm } from "./form";
import { boardsOf, cleanNames, newest, request, WANTED, type Draft } from "./plan";
import { models, put } from "./state";
import type { Examples } from "./wire";

/** Counts come with any page of examples. */
const NONE_BUT_COUNTS = 1;

export function RetrainTab() {
  const asked = place.value.query.get("label") ?? "";
  const draft = useSignal<Draft>({
    base: "",
    add: asked ? [asked] : [],
    rename: {},
    retire: [],
    recipe: "",
    since: "",
    replay: "verified",
    note: "",
  });
  const looked = useSignal(asked);
  const refusal = useSignal<ApiError | null>(null);
  const isBusy = useSignal(false);
  const set = (changed: Partial<Draft>) => (draft.value = { ...draft.value, ...changed });
  const base = useComputed(() => newest(models.value ?? [], draft.value.base));
  const { data, error } = useLoaded<Examples>(examplesOf("", draft.value.recipe, NONE_BUT_COUNTS));
  const counts = data?.counts ?? {};
  const known = base.value?.classes ?? [];
  const words = [...new Set([...Object.keys(counts).filter((label) => !known.includes(label)), ...draft.value.add])].sort();

  const start = async () => {
    refusal.value = null;
    isBusy.value = true;
    try {
      const job = await startRetraining(request(draft.value));
      put(job);
      go("models", "", { tab: "jobs", job: job.id });
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      refusal.value = failed;
    } finally {
      isBusy.value = false;
    }
  };
  const toggle = (label: string) => {
    const { add } = draft.value;
    set({ add: add.includes(label) ? add.filter((one) => one !== label) : [...add, label] });
    looked.value = label;
  };
  const type = (name: string) => {
    const [label] = cleanNames([name]);
    if (label && !known.includes(label) && !draft.value.add.includes(label)) set({ add: [...draft.value.add, label] });
    if (label) looked.value = label;
  };
  return (
    <div class="retrain">
      <section class="pick" aria-label={t("retrain.pick")}>
        <h2>{t("retrain.pick")}</h2>
        <p class="muted">{t("retrain.pick.words", { wanted: WANTED })}</p>
        {error && <Refusal error={error} />}
        <ul class="words">
          {words.map((label) => (
            <Word
              key={label}
              label={label}
              counts={counts[label] ?? { train: 0, acceptance: 0 }}
              isChosen={draft.value.add.includes(label)}
              isLooked={looked.value === label}
              toggle={() => toggle(label)}
              look={() => (looked.value = label)}
            />
          ))}
        </ul>
        {data && words.length === 0 && <p class="muted">{t("retrain.pick.none")}</p>}
        <NewName add={type} />
      </section>
      <section class="seen" aria-label={t("retrain.examples")}>
        {looked.value ? (
          <ExampleCrops key={`${looked.value}/${draft.value.recipe}`} label={looked.value} recipe={draft.value.recipe} />
        ) : (
          <p class="empty">{t("retrain.look")}</p>
        )}
      </section>
      <RetrainForm
        draft={draft.value}
        set={set}
        base={base.value}
        boards={boardsOf(draft.value, counts)}
        refusal={refusal.value}
        isBusy={isBusy.value}
        start={() => void start()}
      />
    </div>
  );
}

interface WordProps {
  label: string;
  counts: { train: number; acceptance: number };
  isChosen: boolean;
  isLooked: boolean;
  toggle: () => void;
  look: () => void;
}

function Word({ label, counts, isChosen, isLooked, toggle, look }: WordProps) {
  const { train, acceptance } = counts;
  return (
    <li data-looked={isLooked}>
      <input type="checkbox" checked={isChosen} aria-label={t("retrain.add", { label })} onChange={toggle} />
      <button type="button" aria-pressed={isLooked} onClick={look}>
        <strong>{label}</strong>
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect class="ground" width="100" height="8" />
          <rect class={train >= WANTED ? "value enough" : "value"} width={Math.min(100, (100 * train) / WANTED)} height="8" />
        </svg>
        <small>{t(train >= WANTED ? "retrain.counts.enough" : "retrain.counts", { train: number(train), wanted: WANTED, acceptance: number(acceptance) })}</small>
      </button>
    </li>
  );
}

function NewName({ add }: { add: (name: string) => void }) {
  const typed = useSignal("");
  return (
    <form
      class="new-name"
      onSubmit={(event) => {
        event.preventDefault();
        add(typed.value);
        typed.value = "";
      }}
    >
      <input
        aria-label={t("retrain.type")}
        placeholder={t("retrain.type")}
        maxLength={200}
        spellcheck={false}
        autocomplete="off"
        value={typed}
        onInput={(event) => (typed.value = event.currentTarget.value)}
      />
      <button type="submit" disabled={!typed.value.trim()}>
        {t("retrain.type.add")}
      </button>
    </form>
  );
}
