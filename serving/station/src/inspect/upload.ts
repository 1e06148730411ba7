// One board to the service, with progress: fetch cannot tell how much of a body is sent, XMLHttpRequest can.

import { ApiError } from "../api";
import { whoAmI } from "../session";
import type { Report } from "../types";
import { t } from "../words";

export interface Posting {
  board: File;
  reference: File | null;
  serial: string;
  recipe: string;
  /** The same key with the same posting gets the same answer, however often it is sent. */
  key: string;
}

/** Throws ApiError, or AbortError when `stop` is aborted. `tell` gets the share of the body that is sent. */
export function upload(posting: Posting, tell: (share: number) => void, stop: AbortSignal): Promise<Report> {
  const form = new FormData();
  form.append("image", posting.board, posting.board.name);
  if (posting.reference) form.append("reference", posting.reference, posting.reference.name);
  if (posting.serial) form.append("serial", posting.serial);
  if (posting.recipe) form.append("recipe", posting.recipe);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/v1/inspect");
    request.setRequestHeader("Idempotency-Key", posting.key);
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && tell(event.loaded / event.total);
    request.upload.onload = () => tell(1);
    request.onload = () => {
      if (request.status === 200) return resolve(request.response as Report);
      if (request.status === 401) void whoAmI(); // shows the login; the board waits here meanwhile
      reject(errorOf(request));
    };
    request.onerror = () => reject(new ApiError(0, "unreachable", t("api.unreachable"), t("api.unreachable.hint")));
    request.onabort = () => reject(new DOMException("stopped", "AbortError"));
    if (stop.aborted) return reject(new DOMException("stopped", "AbortError"));
    stop.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

function errorOf(request: XMLHttpRequest): ApiError {
  const body = request.response as { error?: { code: string; message: string; hint: string } } | null;
  const { code = "", message = t("api.status", { status: request.status }), hint = "" } = body?.error ?? {};
  return new ApiError(request.status, code, message, hint, Number(request.getResponseHeader("retry-after")) || null);
}
