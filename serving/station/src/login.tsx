// The page before the pages: asks for a key, or says that the server cannot be reached.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "./api";
import { logIn, session, whoAmI } from "./session";
import { t } from "./words";

export function Login() {
  const here = session.value;
  const field = useRef<HTMLInputElement>(null);
  const alert = useSignal("");
  const busy = useSignal(false);
  useEffect(() => field.current?.focus(), []);
  if (here.state === "unreachable") {
    return (
      <main class="login">
        <img src="/station/icon.svg" alt="" width="52" height="52" />
        <h1>{here.error.message}</h1>
        <p role="alert">{here.error.hint}</p>
        <button type="button" class="primary" onClick={() => void whoAmI()}>
          {t("shell.retry")}
        </button>
      </main>
    );
  }

  async function submit(event: Event) {
    event.preventDefault();
    const input = field.current!;
    busy.value = true;
    alert.value = "";
    try {
      await logIn(input.value.trim());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      alert.value = [error.message, error.hint].filter(Boolean).map(sentence).join(" ");
      input.select();
    } finally {
      busy.value = false;
    }
  }

  const hint = here.state === "out" && here.hint.includes("keys create") ? sentence(here.hint) : t("login.nokey");
  return (
    <main class="login">
      <form onSubmit={submit}>
        <img src="/station/icon.svg" alt="" width="52" height="52" />
        <h1>{t("shell.title")}</h1>
        <p>{t("login.lead")}</p>
        <input type="text" name="username" autocomplete="username" value="QA station" hidden />
        <label>
          {t("login.key")}
          <input
            ref={field}
            type="password"
            name="key"
            autocomplete="current-password"
            maxLength={200}
            required
            spellcheck={false}
          />
        </label>
        {alert.value && <p role="alert">{alert}</p>}
        <button type="submit" class="primary" disabled={busy}>
          {t("login.submit")}
        </button>
        <p class="muted">{hint}</p>
      </form>
    </main>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`.replace("..", ".");
}
