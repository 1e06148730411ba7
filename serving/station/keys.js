// One key each. Typing in a field, and Enter or space on a control, stay what they are in any page.

/** @param actions lower-case key to function. @param peek called with true while space is held, then false. */
export function wireKeys(actions, peek) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const isPeek = event.key === " " && !event.target.matches("button:not(#layers button), input, summary");
    const isControl = event.target.matches("button, input, summary") && [" ", "Enter"].includes(event.key);
    const isTyping = event.target.matches("input[type=text]");
    if (isTyping || (isControl && !isPeek) || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = isPeek ? () => peek(true) : actions[event.key.toLowerCase()];
    if (!action) return;
    action();
    event.preventDefault();
  });
  document.addEventListener("keyup", (event) => {
    if (event.key !== " ") return;
    peek(false);
    if (event.target.matches("#layers button")) event.preventDefault();
  });
  window.addEventListener("blur", () => peek(false));
}
