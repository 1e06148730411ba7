// A word for the chosen call, always at the same place, one key each; or another class for it.

import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { WORDS } from "../types";
import { t } from "../words";
import { knownClasses } from "./classes";
import { isNaming, judge, rename, WORD_KEYS } from "./judging";
import { wordOf } from "./review";
import { call } from "./state";

const MOST_OFFERED = 8;

export function WordBar() {
  const chosen = call.value;
  if (!chosen) return null;
  const said = wordOf(chosen.id);
  const label = said?.label ?? chosen.label;
  return (
    <section class="wordbar" aria-label={t("review.words")}>
      <div class="buttons" role="group" aria-label={t("review.wordof", { n: chosen.id, label })}>
        {WORDS.map((word) => (
          <button type="button" key={word} class={word} aria-pressed={said?.word === word} onClick={() => judge(word)}>
            {t(`word.${word}`)} <kbd>{WORD_KEYS[word].toUpperCase()}</kbd>
          </button>
        ))}
        <button type="button" aria-expanded={isNaming.value} onClick={() => (isNaming.value = !isNaming.value)}>
          {t("review.class")} <kbd>L</kbd>
        </button>
      </div>
      {isNaming.value && <ClassPicker now={label} />}
    </section>
  );
}

function ClassPicker({ now }: { now: string }) {
  const field = useRef<HTMLInputElement>(null);
  const typed = useSignal("");
  const moved = useSignal<number | null>(null);
  useLayoutEffect(() => field.current?.focus(), []); // before the next key comes
  const options = useComputed(() => {
    const name = typed.value.trim();
    const isIn = (label: string) => label.toLowerCase().includes(name.toLowerCase());
    const known = knownClasses.value.filter(isIn).slice(0, MOST_OFFERED);
    return name && !knownClasses.value.includes(name) ? [...known, name] : known;
  });
  // What is typed in full is meant, else the first class that fits; the new word stands last.
  const at = useComputed(() => {
    if (moved.value !== null) return moved.value;
    const exact = options.value.indexOf(typed.value.trim());
    return !typed.value.trim() ? -1 : exact >= 0 && knownClasses.value.includes(typed.value.trim()) ? exact : 0;
  });

  function key(event: KeyboardEvent) {
    if (event.isComposing) return; // Enter and the arrows are the input method's then
    const count = options.value.length;
    if (event.key === "Escape") {
      isNaming.value = false;
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
      event.preventDefault();
      const by = event.key === "ArrowDown" ? 1 : -1;
      moved.value = at.value < 0 && by < 0 ? count - 1 : (at.value + by + count) % count;
    }
  }

  function submit(event: Event) {
    event.preventDefault();
    const label = options.value[at.value];
    if (label) rename(label);
  }

  return (
    <form class="picker" onSubmit={submit}>
      <label>
        {t("review.class.of", { label: now })}
        <input
          ref={field}
          role="combobox"
          aria-expanded="true"
          aria-controls="picker-classes"
          aria-activedescendant={at.value >= 0 ? `picker-${at.value}` : undefined}
          autocomplete="off"
          spellcheck={false}
          maxLength={200}
          value={typed}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            moved.value = null;
          }}
          onKeyDown={key}
          onBlur={() => (isNaming.value = false)}
        />
      </label>
      <ul id="picker-classes" role="listbox" aria-label={t("review.class.known")}>
        {options.value.map((label, index) => (
          <li
            key={label}
            id={`picker-${index}`}
            role="option"
            aria-selected={index === at.value}
            onPointerDown={(event) => {
              event.preventDefault(); // the field keeps the focus
              rename(label);
            }}
          >
            {knownClasses.value.includes(label) ? label : t("review.class.new", { label })}
          </li>
        ))}
      </ul>
    </form>
  );
}
