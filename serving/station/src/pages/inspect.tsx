import { t } from "../words";

export function Inspect() {
  return <p class="empty">{t("shell.loading")}</p>;
}
