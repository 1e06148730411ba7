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
  /** `who`: whose session ended in the middle of work; their pages stay open behind the login. */
  | { state: "out"; hint: string; who: Who | null }
  | { state: "unreachable"; error: ApiError }
  | { state: "in"; who: Who };

const ORDER: Role[] = ["line", "operator", "engineer", "admin"];
const PATH = "/v1/session";
export const session = signal<Session>({ state: "asking" });

/** Who is here, or was until the session ended: what is drawn must not change before the next login. */
export function whoIsHere(): Who | null {
  const here = session.value;
  return here.state === "in" || here.state === "out" ? here.who : null;
}

/** Whether whoever is here may do what takes `role`. */
export function may(role: Role): boolean {
  const who = whoIsHere();
  return who !== null && ORDER.indexOf(who.role) >= ORDER.indexOf(role);
}

export function actor(): string | null {
  return whoIsHere()?.actor ?? null;
}

export async function whoAmI(): Promise<void> {
  try {
    admit(await request<Who>(PATH));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.value = error.status === 401 ? { state: "out", hint: error.hint, who: null } : { state: "unreachable", error };
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

onUnauthorized((hint) => (session.value = { state: "out", hint, who: whoIsHere() }));
