// What a lot report shows: the boards of a period, what people said of them, and where their real defects are.

import { address, request } from "../api";
import type { Box, QueueItem, QueuePage, Report, Review } from "../types";

export const MOST_BOARDS = 1000;
const PAGE = 200;
const MOST_PAGES = 50;
const AT_ONCE = 4;

export interface LotFilter {
  /** Serials begin with it; empty: all boards. */
  serial: string;
  recipe: string;
  since: Date;
  until: Date | null;
}

export interface LotBoard {
  item: QueueItem;
  /** null: nobody has looked at it. */
  review: Review | null;
}

export interface LotDefect {
  board: QueueItem;
  label: string;
  /** px of the posted image; of a polygon, what it spans. */
  box: Box;
  isMissed: boolean;
  image: { width: number; height: number };
}

export interface Lot {
  /** In the order of inspection. */
  boards: LotBoard[];
  defects: LotDefect[];
  /** There are more boards than MOST_BOARDS, or than can be looked through: the newest are here. */
  isCut: boolean;
}

export type Tell = (step: "boards" | "reviews", done: number, of: number) => void;

/** Throws ApiError, and AbortError when `signal` says so. */
export async function gather(filter: LotFilter, tell: Tell, signal: AbortSignal): Promise<Lot> {
  const { items, isCut } = await listBoards(filter, tell, signal);
  const boards: LotBoard[] = items.map((item) => ({ item, review: null }));
  const defects: LotDefect[] = [];
  let done = 0;
  const reviewed = boards.filter(({ item }) => item.revision > 0);
  await inParallel(reviewed, async (board) => {
    board.review = await request<Review>(`/v1/inspections/${board.item.id}/review`, { signal });
    if (hasDefects(board.review)) {
      const report = await request<Report>(`/v1/inspections/${board.item.id}`, { signal });
      defects.push(...defectsOf(board.item, board.review, report));
    }
    tell("reviews", (done += 1), reviewed.length);
  });
  const order = new Map(items.map((item, index) => [item.id, index]));
  defects.sort((one, other) => order.get(one.board.id)! - order.get(other.board.id)!);
  return { boards, defects, isCut };
}

async function listBoards(filter: LotFilter, tell: Tell, signal: AbortSignal) {
  const { serial, recipe, since, until } = filter;
  const found: QueueItem[] = [];
  let next: string | null = address("/v1/queue", {
    state: "all",
    order: "newest",
    recipe,
    since: since.toISOString(),
    until: until?.toISOString(),
    limit: PAGE,
  });
  for (let page = 0; next && page < MOST_PAGES && found.length <= MOST_BOARDS; page += 1) {
    const answer: QueuePage = await request<QueuePage>(next, { signal });
    found.push(...answer.items.filter((item) => !serial || item.serial?.startsWith(serial)));
    next = answer.next;
    tell("boards", found.length, 0);
  }
  return { items: found.slice(0, MOST_BOARDS).reverse(), isCut: next !== null || found.length > MOST_BOARDS };
}

function hasDefects(review: Review): boolean {
  return review.missed.length > 0 || review.calls.some(({ word }) => word === "real");
}

function defectsOf(board: QueueItem, review: Review, report: Report): LotDefect[] {
  const called = review.calls.flatMap(({ defect, word, label }) => {
    const box = report.defects.find((one) => one.id === defect)?.box_xyxy;
    return word === "real" && box ? [{ label, box, isMissed: false }] : [];
  });
  const missed = review.missed.map(({ label, box_xyxy, polygon }) => ({
    label,
    box: box_xyxy ?? spanned(polygon ?? []),
    isMissed: true,
  }));
  return [...called, ...missed].map((one) => ({ ...one, board, image: report.image }));
}

function spanned(points: [number, number][]): Box {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

async function inParallel<T>(all: T[], work: (one: T) => Promise<void>): Promise<void> {
  const waiting = all.values();
  const worker = async () => {
    for (const one of waiting) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
