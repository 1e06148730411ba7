// The page before the pages: asks for a key, or says that the server cannot be reached.
//
// A session that ends in the middle of work is asked for in front of the open page, whose drafts stay as they are.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ApiError } from "./api";
import { logIn, session, whoAmI, whoIsHere } from "./session";
import { sentence } from "./refusal";
import { t } from "./words";

export function Login() {
  const here = session.value;
  if (here.state === "unreachable") {
    return (
      <InFront name={here.error.message}>
        <h1>{here.error.message}</h1>
        <p role="alert">{here.error.hint}</p>
        <button type="button" class="primary" onClick={() => void whoAmI()}>
          {t("shell.retry")}
        </button>
      </InFront>
    );
  }
  const hint = here.state === "out" && here.hint.includes("keys create") ? sentence(here.hint) : t("login.nokey");
  const before = whoIsHere();
  return (
    <InFront name={t("shell.title")}>
      <h1>{t("shell.title")}</h1>
      <p>{before ? t("login.ended", { actor: before.actor ?? "" }) : t("login.lead")}</p>
      <KeyForm />
      <p class="muted">{hint}</p>
    </InFront>
  );
}

function InFront({ name, children }: { name: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const show = () => dialog.current?.open || dialog.current?.showModal();
  useEffect(() => void show(), []);
  return (
    // Closed by the second Escape where the browser does not know closedby: opened again.
    <dialog ref={dialog} class="login" closedby="none" aria-label={name} onClose={show}>
      <div>
        <img src="/station/icon.svg" alt="" width="52" height="52" />
        {children}
      </div>
    </dialog>
  );
}

function KeyForm() {
  const field = useRef<HTMLInputElement>(null);
  const alert = useSignal("");
  const busy = useSignal(false);
  useLayoutEffect(() => field.current?.focus(), []);

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

  return (
    <form onSubmit={submit}>
      {/* Password managers file the key under this name. */}
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
          data-scan="here"
        />
      </label>
      {alert.value && <p role="alert">{alert}</p>}
      <button type="submit" class="primary" disabled={busy}>
        {t("login.submit")}
      </button>
    </form>
  );
}
