// Asks what is still open before a board is left.

import { Dialog } from "../dialog";
import type { Action } from "../keys";
import { DISPOSITIONS, type Word } from "../types";
import { t } from "../words";
import { chooseUnjudged, finish, finishAnyway, isAsking, judgeRest, WORD_KEYS } from "./judging";
import { review, setDisposition, unjudged } from "./review";

export function FinishQuestion() {
  const rest = unjudged.value.length;
  const now = review.value;
  const close = () => {
    isAsking.value = false;
    chooseUnjudged();
  };
  // Once everything asked for is said, the board is left without another key.
  const then = (say: () => void) => () => {
    say();
    isAsking.value = false;
    finish();
  };
  const words: Action[] = (["real", "false_call", "process_indicator"] as Word[]).map((word) => ({
    key: WORD_KEYS[word],
    words: t(`word.${word}`),
    run: then(() => judgeRest(word)),
  }));
  const fates: Action[] = DISPOSITIONS.map((disposition, index) => ({
    key: String(index + 1),
    words: t(`disposition.${disposition}`),
    run: then(() => setDisposition(disposition)),
  }));
  const asked = rest ? words : now?.disposition === null ? fates : [];
  const anyway = { key: "enter", words: t("review.ask.anyway"), run: finishAnyway };
  const calls = t("review.ask.calls", { n: rest });
  return (
    <Dialog
      title={rest ? calls : t("review.ask.disposition")}
      keys={[...asked, anyway]}
      onClose={close}
    >
      <p>{t(rest ? "review.ask.calls.words" : "review.ask.disposition.words")}</p>
      <div class="choices">
        {[...asked, anyway].map(({ key, words: text, run }) => (
          <button type="button" key={key} onClick={run}>
            {text} <kbd>{key === "enter" ? t("key.Enter") : key.toUpperCase()}</kbd>
          </button>
        ))}
      </div>
    </Dialog>
  );
}
