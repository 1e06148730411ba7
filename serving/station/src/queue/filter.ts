// Which boards the queue shows, and in which order: as the page's address and the service's query have it.

import { address } from "../api";
import type { QueueItem, Verdict } from "../types";

export const ORDERS = ["newest", "worst", "uncertain"] as const;
export const STATES = ["open", "done", "all"] as const;
export const VERDICTS: Verdict[] = ["FAIL", "ERROR", "PASS"];
const TEXTS = ["verdict", "recipe", "label", "serial", "model", "since", "until"] as const;

export type Order = (typeof ORDERS)[number];
export type State = (typeof STATES)[number];
export type Filter = { order: Order; state: State } & Record<(typeof TEXTS)[number], string>;

/** What does not narrow. */
export const NOTHING = Object.fromEntries(TEXTS.map((name) => [name, ""])) as Record<(typeof TEXTS)[number], string>;

export function readFilter(query: URLSearchParams): Filter {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, query.get(name) ?? ""]));
  return {
    ...(texts as Record<(typeof TEXTS)[number], string>),
    order: ORDERS.find((one) => one === query.get("order")) ?? "newest",
    state: STATES.find((one) => one === query.get("state")) ?? "open",
  };
}

/** The shortest query that reads as this filter. */
export function writeFilter(filter: Filter): Record<string, string> {
  const changed = Object.entries(filter).filter(
    ([name, value]) => value && !(name === "order" && value === "newest") && !(name === "state" && value === "open"),
  );
  return Object.fromEntries(changed);
}

export function isNarrowed(filter: Filter): boolean {
  return TEXTS.some((name) => filter[name]);
}

export function queueAddress({ since, until, ...filter }: Filter, limit: number): string {
  return address("/v1/queue", { ...filter, since: moment(since), until: moment(until), limit });
}

/** Times are chosen by this machine's clock; the service wants them with their zone. */
function moment(local: string): string {
  return local ? new Date(local).toISOString() : "";
}

/** Whether a board that was just told of belongs to what is shown. */
export function isWanted(item: QueueItem, filter: Filter): boolean {
  const isDue = item.verdict !== "PASS" || item.audit;
  const created = Date.parse(item.created);
  return (
    (filter.state === "all" || (isDue && item.state === filter.state)) &&
    (!filter.verdict || item.verdict === filter.verdict) &&
    (!filter.recipe || item.recipe === filter.recipe) &&
    (!filter.label || item.labels.includes(filter.label)) &&
    (!filter.serial || item.serial === filter.serial) &&
    (!filter.model || item.model_version === filter.model) &&
    (!filter.since || created >= Date.parse(filter.since)) &&
    (!filter.until || created < Date.parse(filter.until))
  );
}

/** Negative where `one` stands before `other`, as the service orders them. Ids grow with time. */
export function compare(order: Order, one: QueueItem, other: QueueItem): number {
  const value = { newest: () => 0, worst: (of: QueueItem) => of.score, uncertain: (of: QueueItem) => of.uncertainty };
  const difference = value[order](other) - value[order](one);
  return difference || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0);
}
