// In the header: what of one's work the server does not have yet.

import { link } from "./route";
import { outbox } from "./sending";
import { t } from "./words";

export function Unsent() {
  const entries = outbox.entries.value;
  const stopped = entries.filter(({ theirs, refused }) => theirs || refused);
  // Usually a word is sent within a second: nothing to tell.
  const waiting = outbox.isHeldUp.value ? entries.length - stopped.length : 0;
  const isOffline = outbox.isOffline.value && waiting > 0;
  return (
    <p class={isOffline ? "unsent offline" : "unsent"} role="status">
      {waiting > 0 && (
        <span title={isOffline ? t("shell.offline") : undefined}>
          {t("shell.unsent", { n: waiting })}
          {isOffline && <small>{t("shell.offline")}</small>}
        </span>
      )}
      {stopped.map(({ inspection, name, theirs }) => (
        <a key={inspection} href={link("board", inspection)}>
          {t(theirs ? "outbox.conflict" : "outbox.refused", { name })}
        </a>
      ))}
    </p>
  );
}
