import { t } from "../words";

export function Figures() {
  return <p class="empty">{t("shell.loading")}</p>;
}
