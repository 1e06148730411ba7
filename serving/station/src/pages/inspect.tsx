// Pictures in, verdicts out: boards are chosen and paired at the left, and listed with their answers at the right.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { addFiles, done, rows, start, toSend } from "../inspect/batch";
import { Batch } from "../inspect/batch_list";
import { OwnInspections } from "../inspect/own";
import { Setup } from "../inspect/setup";
import { nameKeys } from "../keys";
import { PICTURES } from "../recipes/files";
import { may } from "../session";
import { t } from "../words";
import "../inspect/choosing.css";
import "../inspect/inspect.css";

export function Inspect() {
  const picker = useRef<HTMLInputElement>(null);
  const isOver = useSignal(false);
  const choose = () => picker.current?.click();
  useEffect(
    () =>
      nameKeys([
        { key: "o", words: t("inspect.key.choose"), run: choose },
        { key: "i", words: t("inspect.key.start"), run: () => toSend.value.length && start() },
      ]),
    [],
  );

  function drop(event: DragEvent) {
    event.preventDefault();
    isOver.value = false;
    addFiles([...(event.dataTransfer?.files ?? [])]);
  }

  return (
    <div
      class="inspect"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) isOver.value = false;
      }}
      onDrop={drop}
    >
      <input
        ref={picker}
        type="file"
        multiple
        accept={PICTURES}
        aria-label={t("inspect.choose")}
        tabIndex={-1}
        class="unseen"
        onChange={(event) => {
          addFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = ""; // the same file may be chosen again
        }}
      />
      <Setup choose={choose} />
      <section class="inspect-work" aria-label={t("inspect.column.result")}>
        <Batch />
        {!may("operator") && <OwnInspections after={done.value.length} isShort={rows.value.length > 0} />}
      </section>
    </div>
  );
}
