// Calls of the service. Every failure is an ApiError whose message and hint are words for a person.

import { ApiError } from "./api-error";
import { t } from "./words";

export { ApiError };

const SESSION = "/v1/session";
let tellUnauthorized: (hint: string) => void = () => {};

export function onUnauthorized(listener: (hint: string) => void): void {
  tellUnauthorized = listener;
}

export async function call(url: string, options?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    throw unanswered(error);
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as { error?: Record<string, string> } | null;
  const { code = "", message = t("api.status", { status: response.status }), hint = "" } = body?.error ?? {};
  if (response.status === 401 && url !== SESSION) tellUnauthorized(hint);
  throw new ApiError(response.status, code, message, hint, Number(response.headers.get("retry-after")) || null);
}

export async function request<T>(url: string, options?: RequestInit): Promise<T> {
  const response = await call(url, options);
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw unanswered(error); // the line was cut in the middle of the answer
  }
}

function unanswered(error: unknown): unknown {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  return new ApiError(0, "unreachable", t("api.unreachable"), t("api.unreachable.hint"));
}

export async function send<T>(method: "POST" | "PUT", url: string, body: unknown): Promise<T> {
  return request<T>(url, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
}

export async function remove(url: string): Promise<void> {
  await call(url, { method: "DELETE" });
}

/** The address of a route with its query; what is null, undefined or empty is left out. */
export function address(path: string, query: Record<string, string | number | boolean | null | undefined>): string {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** 32 random hex digits; works on plain http too, where crypto.randomUUID is missing. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
