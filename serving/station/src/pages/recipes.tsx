import { t } from "../words";

export function Recipes() {
  return <p class="empty">{t("shell.loading")}</p>;
}
