import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./api-error";
import { openOutbox, type Outbox } from "./outbox";
import type { CallWord, Review } from "./types";

/** The service's rules of revisions, and a line to it that can be cut before or after it has heard. */
class Service {
  review: Review = { ...EMPTY };
  bodies: object[] = [];
  cut: "no" | "before" | "after" = "no";

  async post(_: string, kind: "verifications" | "disposition", body: object): Promise<Review> {
    if (this.cut === "before") throw new ApiError(0, "unreachable", "", "");
    const { expects, ...said } = body as { expects: number };
    if (expects !== this.review.revision) throw new ApiError(409, "conflict", "another revision", "");
    this.bodies.push({ kind, ...said });
    this.review = { ...this.review, ...said, revision: expects + 1 };
    if (this.cut === "after") throw new ApiError(0, "unreachable", "", "");
    return this.review;
  }
}

const EMPTY: Review = {
  ...{ inspection: "b1", revision: 0, state: "open", calls: [], missed: [], checked: false, disposition: null },
  ...{ note: "", final: null, hasty: false, question: "", actor: "", at: null, history: [] },
};
const says = (word: CallWord["word"], checked = false) => ({
  verification: { calls: [{ defect: 1, word, label: "short" }], missed: [], checked },
});

let service: Service;
let store: Storage;
let outbox: Outbox;

function open(actor = "ann"): Outbox {
  return openOutbox({
    store,
    actor: () => actor,
    read: async () => service.review,
    post: (...call) => service.post(...call),
    now: Date.now,
  });
}

beforeEach(() => {
  vi.useFakeTimers();
  service = new Service();
  store = memory();
  outbox = open();
});
afterEach(() => vi.useRealTimers());

test("words within a second go as one document, and the outbox is empty then", async () => {
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(500);
  outbox.keep("b1", "F1", 0, says("false_call"));
  await vi.advanceTimersByTimeAsync(2000);
  expect(service.bodies).toEqual([{ kind: "verifications", ...says("false_call").verification }]);
  expect(outbox.entries.value).toEqual([]);
  expect(store.length).toBe(0);
});

test("a verification and a disposition follow each other on the revisions they make", async () => {
  outbox.keep("b1", "F1", 0, says("real", true));
  outbox.keep("b1", "F1", 0, { fate: { disposition: "scrap", note: "" } });
  await vi.advanceTimersByTimeAsync(2000);
  expect(service.review).toMatchObject({ revision: 2, checked: true, disposition: "scrap" });
});

test("what was said while the line is cut is kept over a reload and sent when it is back", async () => {
  service.cut = "before";
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(5000);
  expect([outbox.isOffline.value, outbox.entries.value.length]).toEqual([true, 1]);
  vi.clearAllTimers(); // the page is gone
  service.cut = "no";
  outbox = open();
  outbox.flush();
  await vi.advanceTimersByTimeAsync(10);
  expect(service.review.calls).toEqual(says("real").verification.calls);
  expect(outbox.entries.value).toEqual([]);
});

test("attempts become rarer, and go on", async () => {
  service.cut = "before";
  const post = vi.spyOn(service, "post");
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(60_000);
  const inTheFirstMinute = post.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(inTheFirstMinute).toBeGreaterThan(3);
  expect(inTheFirstMinute).toBeLessThan(10);
  expect(post.mock.calls.length - inTheFirstMinute).toBe(2);
});

test("an answer that was lost is no conflict, and what was said since follows it", async () => {
  service.cut = "after";
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(950);
  service.cut = "no";
  outbox.keep("b1", "F1", 0, says("false_call"));
  await vi.advanceTimersByTimeAsync(5000);
  expect(outbox.entries.value).toEqual([]);
  expect(service.review).toMatchObject({ revision: 2, calls: says("false_call").verification.calls });
});

test("another's review is never overwritten until one insists", async () => {
  service.review = { ...EMPTY, revision: 1, actor: "bob", ...says("false_call").verification };
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(service.review.actor).toBe("bob");
  expect(service.bodies).toEqual([]);
  expect(outbox.entries.value[0]?.theirs?.calls).toEqual(says("false_call").verification.calls);
  outbox.insist("b1");
  await vi.advanceTimersByTimeAsync(100);
  expect(service.review).toMatchObject({ revision: 2, calls: says("real").verification.calls });
});

test("a board in conflict does not hold up the others", async () => {
  service.review = { ...EMPTY, revision: 1 };
  outbox.keep("b1", "F1", 0, says("real"));
  outbox.keep("b2", "F2", 1, says("real"));
  await vi.advanceTimersByTimeAsync(3000);
  expect(outbox.entries.value.map(({ inspection }) => inspection)).toEqual(["b1"]);
});

test("a board at which the server fails does not hold up the others, and is tried again", async () => {
  const post = service.post.bind(service);
  const fails = new ApiError(500, "internal", "it failed", "");
  const spy = vi.spyOn(service, "post");
  spy.mockImplementation((id, ...rest) => (id === "b1" ? Promise.reject(fails) : post(id, ...rest)));
  outbox.keep("b1", "F1", 0, says("real"));
  outbox.keep("b2", "F2", 0, says("false_call"));
  await vi.advanceTimersByTimeAsync(1500);
  expect(outbox.entries.value.map(({ inspection }) => inspection)).toEqual(["b1"]);
  expect([outbox.isHeldUp.value, outbox.isOffline.value]).toEqual([true, false]);
  spy.mockRestore();
  service.review = { ...EMPTY };
  await vi.advanceTimersByTimeAsync(5000);
  expect(service.review.calls).toEqual(says("real").verification.calls);
  expect([outbox.entries.value, outbox.isHeldUp.value]).toEqual([[], false]);
});

test("words on a board that is gone when its conflict is looked into are refused, not sent for ever", async () => {
  service.review = { ...EMPTY, revision: 1 };
  outbox = openOutbox({
    store,
    actor: () => "ann",
    read: () => Promise.reject(new ApiError(404, "not_found", "there is no inspection b1", "")),
    post: (...call) => service.post(...call),
    now: Date.now,
  });
  outbox.keep("b1", "F1", 0, says("real"));
  outbox.keep("b2", "F2", 1, says("real"));
  await vi.advanceTimersByTimeAsync(3000);
  expect(outbox.entries.value.map(({ refused }) => refused)).toEqual(["there is no inspection b1"]);
});

test("a change while a document is under way is sent after it", async () => {
  let answer = () => {};
  const wait = new Promise<void>((resolve) => (answer = resolve));
  const post = service.post.bind(service);
  vi.spyOn(service, "post").mockImplementationOnce(async (...call) => {
    const made = await post(...call);
    await wait;
    return made;
  });
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(1000);
  outbox.keep("b1", "F1", 0, says("false_call"));
  expect(outbox.withdraw("b1")).toBe(false);
  answer();
  await vi.advanceTimersByTimeAsync(3000);
  expect(service.review).toMatchObject({ revision: 2, calls: says("false_call").verification.calls });
});

test("what the server will not take is kept and said", async () => {
  vi.spyOn(service, "post").mockRejectedValue(new ApiError(422, "field", "calls.0.label: too long", "shorten it"));
  outbox.keep("b1", "F1", 0, says("real"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(service.post).toHaveBeenCalledTimes(1);
  expect(outbox.entries.value[0]?.refused).toBe("calls.0.label: too long shorten it");
});

test("one person's work is not sent under another's name", async () => {
  outbox.keep("b1", "F1", 0, says("real"));
  vi.clearAllTimers();
  const other = open("bob");
  other.flush();
  await vi.advanceTimersByTimeAsync(5000);
  expect(service.bodies).toEqual([]);
  expect(other.entries.value).toEqual([]);
});

/** A browser's store. */
function memory(): Storage {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    key: (n) => [...kept.keys()][n] ?? null,
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
    clear: () => kept.clear(),
  };
}
