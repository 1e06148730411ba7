// Whose session this is.

import { signal } from "@preact/signals";
import { ApiError, onUnauthorized, remove, request, send } from "./api";

export type Role = "line" | "operator" | "engineer" | "admin";
export interface Who {
  /** null: the server runs without keys, and everybody may do everything. */
  actor: string | null;
  role: Role;
}
type Session =
  | { state: "asking" }
  | { state: "out"; hint: string }
  | { state: "unreachable"; error: ApiError }
  | { state: "in"; who: Who };

const ORDER: Role[] = ["line", "operator", "engineer", "admin"];
const PATH = "/v1/session";
export const session = signal<Session>({ state: "asking" });

/** Whether whoever is here may do what takes `role`. */
export function may(role: Role): boolean {
  const here = session.value;
  return here.state === "in" && ORDER.indexOf(here.who.role) >= ORDER.indexOf(role);
}

export function actor(): string | null {
  return session.value.state === "in" ? session.value.who.actor : null;
}

export async function whoAmI(): Promise<void> {
  try {
    admit(await request<Who>(PATH));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.value = error.status === 401 ? { state: "out", hint: error.hint } : { state: "unreachable", error };
  }
}

/** Throws ApiError, in words, for a key that is not known. */
export async function logIn(key: string): Promise<void> {
  admit(await send<Who>("POST", PATH, { key }));
}

export async function logOut(): Promise<void> {
  await remove(PATH).catch(() => {}); // a server that does not answer shows nothing after the reload either
  location.replace("/station");
}

let lastActor: string | null | undefined;

function admit(who: Who): void {
  if (lastActor !== undefined && lastActor !== who.actor) {
    location.reload(); // nothing of another's work stays
    return;
  }
  lastActor = who.actor;
  session.value = { state: "in", who };
}

onUnauthorized((hint) => (session.value = { state: "out", hint }));
