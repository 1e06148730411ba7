// A new recipe: a name, and a golden reference, or good boards to build one from.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ApiError } from "../api";
import { go } from "../route";
import { t } from "../words";
import { storePictures, type Pictures } from "./calls";
import { PICTURES } from "./files";
import { NumberField } from "./settings";
import { NO_SETTINGS } from "./wire";

const LEAST_GOOD = 3;
/** Would be another address of the service. */
const NO_NAME = /\/|^\.\.?$/;

export function NewRecipe({ names }: { names: string[] }) {
  const name = useSignal("");
  const field = useSignal<Pictures["field"]>("reference");
  const files = useSignal<File[]>([]);
  const scale = useSignal<number | null>(null);
  const isBusy = useSignal(false);
  const fault = useSignal<ApiError | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isTaken = names.includes(name.value.trim());
  const isNoName = NO_NAME.test(name.value.trim());
  const isShort = field.value === "good" && files.value.length > 0 && files.value.length < LEAST_GOOD;
  const isReady = name.value.trim() !== "" && !isTaken && !isNoName && !isShort && files.value.length > 0;
  const take = (list: FileList | null | undefined) => (files.value = [...files.value, ...(list ?? [])]);

  async function create(event: Event) {
    event.preventDefault();
    isBusy.value = true;
    fault.value = null;
    try {
      const settings = { ...NO_SETTINGS, px_per_mm: scale.value };
      const made = await storePictures(name.value.trim(), settings, { field: field.value, files: files.value }, 0);
      go("recipes", made.name);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      fault.value = error;
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <form class="new-recipe" aria-labelledby="new-title" onSubmit={(event) => void create(event)}>
      <h2 id="new-title">{t("recipes.new")}</h2>
      <label class="field">
        <span>{t("recipes.new.name")}</span>
        <input required maxLength={200} spellcheck={false} value={name} onInput={(event) => (name.value = event.currentTarget.value)} />
        {isTaken && <small class="refused">{t("recipes.new.taken")}</small>}
        {isNoName && <small class="refused">{t("recipes.new.noname")}</small>}
      </label>
      <fieldset class="choice">
        <legend>{t("recipes.new.from")}</legend>
        {(["reference", "good"] as const).map((one) => (
          <label key={one}>
            <input type="radio" name="from" checked={field.value === one} onChange={() => (field.value = one)} />
            <span>
              {t(`recipes.new.${one}`)}
              <small>{t(`recipes.new.${one}.help`)}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="drop" onDragOver={(event) => event.preventDefault()} onDrop={(event) => dropped(event, take)}>
        <input
          ref={picker}
          type="file"
          multiple
          class="unseen"
          tabIndex={-1}
          accept={PICTURES}
          aria-label={t("inspect.choose")}
          onChange={(event) => {
            take(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        {files.value.length === 0 ? <small>{t("inspect.drop")}</small> : <Files files={files.value} remove={(file) => (files.value = files.value.filter((one) => one !== file))} />}
        <button type="button" onClick={() => picker.current?.click()}>
          {t("inspect.choose")}
        </button>
      </div>
      {isShort && <small class="refused">{t("recipes.good.count", { n: files.value.length })}</small>}
      <NumberField
        label={t("recipes.scale")}
        unit={t("recipes.scale.unit")}
        value={scale.value}
        set={(value) => (scale.value = value)}
      />
      {fault.value && (
        <p class="refused" role="alert">
          {fault.value.message} {fault.value.hint}
        </p>
      )}
      <button type="submit" class="primary" disabled={!isReady || isBusy.value}>
        {isBusy.value ? t("recipes.new.busy") : t("recipes.new.create")}
      </button>
    </form>
  );
}

function dropped(event: DragEvent, take: (files: FileList | undefined) => void): void {
  event.preventDefault();
  take(event.dataTransfer?.files);
}

function Files({ files, remove }: { files: File[]; remove: (file: File) => void }) {
  return (
    <ul class="reference-files">
      {files.map((file, index) => (
        <li key={index}>
          <span title={file.name}>{file.name}</span>
          <button type="button" class="link" aria-label={t("inspect.remove", { name: file.name })} onClick={() => remove(file)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}
