// The server doubts that so many false calls were looked at, and asks. Shown wherever one is by then.

import { confirmWords, questions } from "./board/review";
import { Dialog } from "./dialog";
import { t } from "./words";

export function PaceQuestion() {
  const asked = questions.value[0];
  if (!asked) return null;
  const close = () => (questions.value = questions.value.slice(1));
  const confirm = () => {
    confirmWords(asked);
    close();
  };
  const yes = { key: "y", words: t("pace.yes"), run: confirm };
  return (
    <Dialog key={asked.inspection} title={t("pace.title")} onClose={close} keys={[yes]}>
      <p>{t("pace.words")}</p>
      <div class="choices">
        <button type="button" onClick={confirm}>
          {t("pace.yes")} <kbd>Y</kbd>
        </button>
        <button type="button" onClick={close}>
          {t("pace.no")} <kbd>{t("key.Escape")}</kbd>
        </button>
      </div>
    </Dialog>
  );
}
