import { t } from "../words";

export function Board() {
  return <p class="empty">{t("shell.loading")}</p>;
}
