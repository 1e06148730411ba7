// Pages are loaded when they are opened, so that the queue does not wait for the recipe editor.

import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { t } from "./words";

export function lazyPage(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | null = null;
  return function Page() {
    const state = useSignal<"loading" | "here" | "failed">(loaded ? "here" : "loading");
    const fetchPage = () => {
      state.value = "loading";
      load().then(
        (found) => {
          loaded = found;
          state.value = "here";
        },
        () => (state.value = "failed"),
      );
    };
    useEffect(() => {
      if (!loaded) fetchPage();
    }, []);
    if (state.value === "here" && loaded) {
      const Loaded = loaded;
      return <Loaded />;
    }
    if (state.value === "loading") return <p class="empty">{t("shell.loading")}</p>;
    return (
      <p class="empty" role="alert">
        {t("api.unreachable")}{" "}
        <button type="button" onClick={fetchPage}>
          {t("shell.retry")}
        </button>
      </p>
    );
  };
}
