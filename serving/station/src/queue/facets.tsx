// What narrows the queue, with the number of boards behind each choice.

import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { t, number, type Key } from "../words";
import { isNarrowed, NOTHING, STATES, VERDICTS, type Filter } from "./filter";
import { counts, items } from "./list";

interface Props {
  asked: Filter;
  change: (changed: Partial<Filter>) => void;
  search: RefObject<HTMLInputElement | null>;
}

export function Facets({ asked, change, search }: Props) {
  const known = counts.value;
  const numbers: Record<string, number | undefined> = { open: known?.open, done: known?.done };
  const models = unique(items.value.map((item) => item.model_version));
  const labels = Object.entries(known?.by_label ?? {}).sort((one, other) => other[1] - one[1]);
  if (asked.label && !labels.some(([label]) => label === asked.label)) labels.push([asked.label, 0]);
  return (
    <aside class="facets" aria-label={t("queue.filter")}>
      <div class="segments states" role="group" aria-label={t("queue.state")}>
        {STATES.map((state) => (
          <button type="button" key={state} aria-pressed={asked.state === state} onClick={() => change({ state })}>
            {t(`queue.state.${state}`)}
            {numbers[state] !== undefined && <b>{number(numbers[state])}</b>}
          </button>
        ))}
      </div>
      <Choices
        title={t("queue.verdict")}
        chosen={asked.verdict}
        choose={(verdict) => change({ verdict })}
        options={VERDICTS.map((verdict) => [verdict, known?.by_verdict[verdict]])}
        look="verdict"
      />
      <Choices title={t("queue.class")} chosen={asked.label} choose={(label) => change({ label })} options={labels} />
      <div class="fields">
        <Field name="serial" asked={asked} change={change} field={search} />
        <Field name="recipe" asked={asked} change={change} known={unique(items.value.map((item) => item.recipe))} />
        <Field name="model" asked={asked} change={change} known={models} />
        <Field name="since" asked={asked} change={change} type="datetime-local" />
        <Field name="until" asked={asked} change={change} type="datetime-local" />
      </div>
      {isNarrowed(asked) && (
        <button type="button" onClick={() => change(NOTHING)}>
          {t("queue.clearfilter")}
        </button>
      )}
    </aside>
  );
}

interface ChoiceProps {
  title: string;
  chosen: string;
  choose: (value: string) => void;
  options: [string, number | undefined][];
  look?: string;
}

function Choices({ title, chosen, choose, options, look }: ChoiceProps) {
  if (!options.length) return null;
  return (
    <fieldset>
      <legend>{title}</legend>
      <ul>
        {options.map(([value, boards]) => (
          <li key={value}>
            <button
              type="button"
              class="choice"
              aria-pressed={chosen === value}
              onClick={() => choose(chosen === value ? "" : value)}
            >
              <span class={look ? `${look} ${value}` : undefined}>{value}</span>
              {boards !== undefined && <b>{number(boards)}</b>}
            </button>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

interface FieldProps {
  name: "serial" | "recipe" | "model" | "since" | "until";
  asked: Filter;
  change: (changed: Partial<Filter>) => void;
  type?: "search" | "datetime-local";
  known?: string[];
  field?: RefObject<HTMLInputElement | null>;
}

function Field({ name, asked, change, type = "search", known = [], field }: FieldProps) {
  const value = type === "datetime-local" ? onThisClock(asked[name]) : asked[name];
  // Kept apart while it is typed: boards that arrive draw the page anew.
  const typed = useSignal(value);
  useEffect(() => {
    typed.value = value;
  }, [value]);
  const commit = () => {
    if (typed.value.trim() !== value) change({ [name]: typed.value.trim() });
  };
  return (
    <label>
      {t(`queue.${name}` as Key)}
      <input
        ref={field}
        type={type}
        value={typed}
        maxLength={200}
        autocomplete="off"
        spellcheck={false}
        list={known.length ? `known-${name}` : undefined}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          if (!typed.value) commit();
        }}
        onBlur={commit}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && commit()}
      />
      {known.length > 0 && (
        <datalist id={`known-${name}`}>
          {known.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
    </label>
  );
}

/** A moment with its zone, as links of other pages have it, as the field for it wants it. */
function onThisClock(moment: string): string {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - 60_000 * at.getTimezoneOffset()).toISOString().slice(0, 19);
}

function unique(values: (string | null)[]): string[] {
  return [...new Set(values.filter((value) => value !== null))].sort();
}
