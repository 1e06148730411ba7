import { t } from "../words";

export function Queue() {
  return <p class="empty">{t("shell.loading")}</p>;
}
