// Light, dark, or as the system has it.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEPT = "station.theme";

export const theme = signal<Theme>(kept());
apply(theme.value);

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(KEPT, chosen);
  apply(chosen);
}

function kept(): Theme {
  const found = localStorage.getItem(KEPT);
  return found === "light" || found === "dark" ? found : "auto";
}

function apply(chosen: Theme): void {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
