// What an engineer does with a version: puts it into production, takes it back, retires it. Each is asked first.

import { useSignal } from "@preact/signals";
import { t } from "../words";
import { Promote, RollBack, Retire } from "./deeds";
import { isInUse, models } from "./state";
import type { Model } from "./wire";

type Deed = "promote" | "rollback" | "retire";

export function Actions({ model, isBusy }: { model: Model; isBusy: boolean }) {
  const asked = useSignal<Deed | null>(null);
  const close = () => (asked.value = null);
  const isUsed = isInUse(model);
  const isOnly = models.value!.length === 1; // there is nothing to go back to
  return (
    <>
      {model.stage !== "retired" && (
        <button type="button" class={isUsed ? undefined : "primary"} disabled={isBusy} onClick={() => (asked.value = "promote")}>
          {t("models.promote")}
        </button>
      )}
      {isUsed && !isOnly && (
        <button type="button" disabled={isBusy} onClick={() => (asked.value = "rollback")}>
          {t("models.rollback")}
        </button>
      )}
      {model.stage !== "retired" && !isUsed && (
        <button type="button" class="link danger" disabled={isBusy} onClick={() => (asked.value = "retire")}>
          {t("models.retire")}
        </button>
      )}
      {asked.value === "promote" && <Promote model={model} onClose={close} />}
      {asked.value === "rollback" && <RollBack model={model} onClose={close} />}
      {asked.value === "retire" && <Retire model={model} onClose={close} />}
    </>
  );
}
