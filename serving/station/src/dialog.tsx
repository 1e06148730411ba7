// A modal dialog. The focus goes to the dialog itself, so that a key meant for the page presses none of its buttons.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { nameKeys, type Action } from "./keys";
import { t } from "./words";
import "./dialog.css";

interface Props {
  title: string;
  onClose: () => void;
  keys?: Action[];
  wide?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, keys = [], wide = false, children }: Props) {
  const name = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  // Before anything is drawn: no key falls between two questions.
  useLayoutEffect(() => nameKeys(keys.map((action) => ({ ...action, inDialog: true }))));
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : undefined}
      tabIndex={-1}
      aria-labelledby={name}
      onClose={onClose}
    >
      <header class="row">
        <h2 id={name}>{title}</h2>
        <button type="button" class="link close" aria-label={t("shell.close")} onClick={() => dialog.current?.close()}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
