// Where in the station one is: the part of the address after #/, and its query.

import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
let mayLeave: (wanted: string) => boolean = () => true;

addEventListener("hashchange", () => {
  if (mayLeave(location.hash)) hash.value = location.hash;
  else history.replaceState(null, "", hash.value || "#/");
});

export interface Place {
  page: string;
  /** What the page shows, as the id of an inspection or the name of a recipe; "" for none. */
  subject: string;
  query: URLSearchParams;
}

export const place = computed<Place>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?");
  const [page = "", subject = ""] = path.split("/");
  return { page: page || "queue", subject: decoded(subject), query: new URLSearchParams(query) };
});

/** An address typed by hand may be no encoding at all: what it names is then unknown, in words. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function go(page: string, subject = "", query: Record<string, string> = {}): void {
  location.hash = link(page, subject, query);
}

export function link(page: string, subject = "", query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(query).toString();
  return `#/${page}${subject ? `/${encodeURIComponent(subject)}` : ""}${asked ? `?${asked}` : ""}`;
}

/** Ask before another place is shown, wanted by a link, the back key or a scan. Returns what takes it back. */
export function guardPlace(ask: (wanted: string) => boolean): () => void {
  mayLeave = ask;
  return () => (mayLeave = () => true);
}

/** Change the query of this place without a new entry in the history. */
export function replaceQuery(query: Record<string, string>): void {
  history.replaceState(null, "", link(place.value.page, place.value.subject, query));
  hash.value = location.hash;
}
