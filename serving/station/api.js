// Calls of the service. Every failure is an ApiError whose message and hint are words for the operator.

export class ApiError extends Error {
  constructor(status, message, hint, retryAfterSeconds) {
    super(message);
    this.status = status;
    this.hint = hint;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const SESSION = "/v1/session";

async function call(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new ApiError(0, "The server does not answer.", "Is it still running? Try again in a moment.", null);
  }
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("retry-after")) || null;
  const body = await response.json().catch(() => null);
  const error = body?.error ?? { message: `The server answered ${response.status}.`, hint: "" };
  if (response.status === 401 && url !== SESSION) {
    document.dispatchEvent(new CustomEvent("unauthorized", { detail: error.hint }));
  }
  throw new ApiError(response.status, error.message, error.hint, retryAfter);
}

/** Whose session this is: {actor, role, expires}; 401 when there is none. */
export async function whoAmI() {
  return (await call(SESSION)).json();
}

export async function logIn(key) {
  const headers = { "Content-Type": "application/json" };
  return (await call(SESSION, { method: "POST", body: JSON.stringify({ key }), headers })).json();
}

export async function logOut() {
  await call(SESSION, { method: "DELETE" });
}

/** Inspect one board. The key makes it safe to send the same request again. */
export async function inspect({ image, reference, serial, recipe }, key) {
  const body = new FormData();
  body.append("image", image, image.name);
  if (reference) body.append("reference", reference, reference.name);
  if (serial) body.append("serial", serial);
  if (recipe) body.append("recipe", recipe);
  const response = await call("/v1/inspect", { method: "POST", body, headers: { "Idempotency-Key": key } });
  return response.json();
}

export async function getInspection(id) {
  return (await call(`/v1/inspections/${encodeURIComponent(id)}`)).json();
}

/** A page of inspections, newest first: {inspections, next}. */
export async function listInspections(link = "/v1/inspections?limit=15") {
  return (await call(link)).json();
}

/** A picture as an object URL; the caller revokes it. */
export async function getPicture(link) {
  return URL.createObjectURL(await (await call(link)).blob());
}

/** Whether one map can be believed, tested on a defect or, without one, on the top call. */
export async function getEvidence(link, map, defect) {
  const query = new URLSearchParams(defect === null ? { map } : { map, defect });
  return (await call(`${link}?${query}`)).json();
}

export async function listSamples() {
  return (await call("/station/samples.json")).json();
}

/** A sample picture as the File a person would have chosen. */
export async function getFile(link) {
  const blob = await (await call(link)).blob();
  return new File([blob], link.split("/").pop(), { type: blob.type });
}

/** 32 random hex digits; works on plain http too, where crypto.randomUUID is missing. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
