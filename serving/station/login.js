// Who is here: a key is asked for while the server wants one, and whose it is stands in the header.

import { logIn, logOut, whoAmI } from "/station/api.js";

const byId = (id) => document.getElementById(id);
let actor = null;
let isAsking = false;
let admit = () => {};

/** Resolves once someone is logged in, or at once where the server runs without keys. */
export async function admitted() {
  wire();
  const someone = new Promise((resolve) => (admit = resolve));
  try {
    welcome(await whoAmI());
  } catch (error) {
    if (error.status !== 401) throw error;
    ask(error.hint);
  }
  await someone;
}

function ask(hint) {
  const dialog = byId("login");
  if (dialog.open) return;
  byId("login-hint").textContent = hint.includes("keys create") ? `${upper(hint)}.` : byId("login-hint").dataset.usual;
  byId("login-alert").hidden = true;
  isAsking = true;
  dialog.showModal();
}

function welcome(session) {
  if (actor !== null && session.actor !== actor) {
    location.reload(); // nothing of another's work stays
    return;
  }
  actor = session.actor;
  byId("who").textContent = session.actor === null ? "" : `${session.actor} (${session.role})`;
  for (const id of ["who", "log-out"]) byId(id).hidden = session.actor === null;
  isAsking = false;
  byId("login").close();
  admit();
}

async function submit(event) {
  event.preventDefault();
  const key = byId("key");
  byId("log-in").disabled = true;
  byId("login-alert").hidden = true;
  try {
    welcome(await logIn(key.value.trim()));
    key.value = "";
  } catch (error) {
    const words = [error.message, error.hint].filter(Boolean).map(upper);
    byId("login-alert").textContent = `${words.join(". ")}.`.replace("..", ".");
    byId("login-alert").hidden = false;
    key.select();
  } finally {
    byId("log-in").disabled = false;
  }
}

async function leave() {
  await logOut().catch(() => {}); // a server that does not answer shows nothing after the reload either
  location.replace("/station");
}

function upper(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function wire() {
  byId("login-hint").dataset.usual = byId("login-hint").textContent;
  byId("login-form").addEventListener("submit", submit);
  // A browser lets a second Escape close what the first could not.
  byId("login").addEventListener("cancel", (event) => event.preventDefault());
  byId("login").addEventListener("close", () => isAsking && byId("login").showModal());
  byId("log-out").addEventListener("click", leave);
  document.addEventListener("unauthorized", (event) => ask(event.detail));
}
