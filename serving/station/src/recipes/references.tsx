// Golden references of the open recipe: look at them, add one, build one from good boards. Each is a revision at once,
// because pictures are no part of what is being changed here.

import { signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { notify, notifyError } from "../notices";
import { may } from "../session";
import { number, t } from "../words";
import { fetchReferences, storePictures, type Pictures } from "./calls";
import { rebase, stored } from "./draft";
import { PICTURES } from "./files";
import { shownAt, SMALL_PX } from "./pictures";
import type { Reference } from "./wire";

/** The reference that is on the stage, by its place. */
export const shownReference = signal(0);
const LEAST_GOOD = 3;
const MOST_GOOD = 20;

export function References() {
  const recipe = stored.value!;
  const busy = useSignal("");
  const adding = useRef<HTMLInputElement>(null);
  const building = useRef<HTMLInputElement>(null);
  const isFixed = !may("engineer") || busy.value !== "";

  async function store(words: string, pictures: () => Promise<Pictures>) {
    busy.value = words;
    try {
      const sent = await pictures();
      const answer = await storePictures(recipe.name, recipe.recipe, sent, recipe.revision);
      rebase(answer);
      shownReference.value = Math.min(shownReference.value, answer.references.length - 1);
      notify(t("recipes.reference.stored", { n: answer.revision }));
    } catch (error) {
      notifyError(error);
    } finally {
      busy.value = "";
    }
  }

  const add = (files: File[]) =>
    store(t("recipes.reference.sending"), async () => ({
      field: "reference",
      files: [...(await fetchReferences(recipe.references)), ...files],
    }));
  const remove = (index: number) =>
    store(t("recipes.reference.sending"), async () => ({
      field: "reference",
      files: await fetchReferences(recipe.references.filter((_, other) => other !== index)),
    }));
  const build = (files: File[]) => {
    if (files.length < LEAST_GOOD || files.length > MOST_GOOD) {
      return notify(t("recipes.good.count", { n: files.length }), "error");
    }
    const named = [...files].sort((one, other) => one.name.localeCompare(other.name));
    return store(t("recipes.good.building", { n: files.length }), async () => ({ field: "good", files: named }));
  };

  return (
    <aside class="references" aria-label={t("recipes.references")}>
      <h2>{t("recipes.references")}</h2>
      {recipe.references.length === 0 && <p class="muted">{t("recipes.references.none")}</p>}
      <ul>
        {recipe.references.map((reference, index) => (
          <li key={reference.sha256}>
            <button
              type="button"
              class="reference"
              aria-pressed={shownReference.value === index}
              onClick={() => (shownReference.value = index)}
            >
              <img src={shownAt(reference, SMALL_PX)} alt="" loading="lazy" />
              <span title={reference.name}>{reference.name}</span>
              <small>{t("recipes.reference.size", { width: reference.width, height: reference.height })}</small>
            </button>
            {may("engineer") && recipe.references.length > 1 && (
              <button type="button" class="link" disabled={isFixed} onClick={() => void remove(index)}>
                {t("recipes.reference.remove", { name: reference.name })}
              </button>
            )}
          </li>
        ))}
      </ul>
      {may("engineer") && (
        <>
          <Picker input={adding} label={t("recipes.reference.add")} isFixed={isFixed} take={(files) => void add(files)} />
          <Picker input={building} label={t("recipes.good.build")} isFixed={isFixed} take={(files) => void build(files)} />
          <small>{t("recipes.good.help")}</small>
        </>
      )}
      <p class="busy" role="status">
        {busy}
      </p>
    </aside>
  );
}

interface PickerProps {
  input: { current: HTMLInputElement | null };
  label: string;
  isFixed: boolean;
  take: (files: File[]) => void;
}

function Picker({ input, label, isFixed, take }: PickerProps) {
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        accept={PICTURES}
        class="unseen"
        tabIndex={-1}
        aria-label={label}
        onChange={(event) => {
          take([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      <button
        type="button"
        class="drop-button"
        disabled={isFixed}
        onClick={() => input.current?.click()}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          take([...(event.dataTransfer?.files ?? [])]);
        }}
      >
        {label}
      </button>
    </>
  );
}

/** How the good boards agree with the reference that was built from them. */
export function GoodBoards({ reference }: { reference: Reference }) {
  const { boards } = reference;
  if (!boards.length) return null;
  const middle = [...boards].sort((one, other) => one.difference - other.difference)[Math.floor(boards.length / 2)]!;
  const largest = Math.max(...boards.map((fit) => fit.difference), 1e-9);
  const standsOut = (difference: number) => difference > 2 * middle.difference + 0.5;
  return (
    <div class="good-boards">
      <h3>{t("recipes.good.title", { n: boards.length })}</h3>
      <table>
        <thead>
          <tr>
            <th>{t("recipes.good.board")}</th>
            <th>{t("recipes.good.residual")}</th>
            <th colSpan={2}>{t("recipes.good.difference")}</th>
          </tr>
        </thead>
        <tbody>
          {boards.map(({ residual_px, difference }, index) => (
            <tr key={index} data-odd={standsOut(difference)}>
              <th scope="row">{index + 1}</th>
              <td>{number(residual_px, 2)}</td>
              <td>{number(difference, 1)}</td>
              <td>
                <meter value={difference} max={largest} aria-label={t("recipes.good.difference")} />
                {standsOut(difference) && <span class="refused">{t("recipes.good.odd")}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
