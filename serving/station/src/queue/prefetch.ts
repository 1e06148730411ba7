// Pictures of a board before it is opened, so that its first sight waits for nothing. The browser's cache keeps them.

import type { Report } from "../types";

interface Pyramid {
  width: number;
  height: number;
  tile_px: number;
  max_level: number;
}

const SIGHT_PX = 1400;
const MOST_TILES = 9;
const done = new Set<string>();

export async function prefetch(id: string): Promise<void> {
  if (done.has(id)) return;
  done.add(id);
  const base = `/v1/inspections/${id}`;
  const [report, pyramid] = await Promise.all([read<Report>(base), read<Pyramid>(`${base}/tiles/image`)]);
  if (!report || !pyramid) return;
  for (const layer of report.reference ? ["image", "reference"] : ["image"]) {
    for (const path of firstTiles(pyramid)) new Image().src = `${base}/tiles/${layer}/${path}`;
  }
}

/** LEVEL/COLUMN_ROW of the coarsest level that fills a view. */
export function firstTiles({ width, height, tile_px, max_level }: Pyramid): string[] {
  const halvings = Math.max(0, Math.ceil(Math.log2(Math.max(width, height) / SIGHT_PX)));
  const level = Math.max(0, max_level - halvings);
  const across = (px: number) => Math.ceil(px / 2 ** (max_level - level) / tile_px);
  const columns = Array.from({ length: across(width) }, (_, column) => column);
  const rows = Array.from({ length: across(height) }, (_, row) => row);
  return rows.flatMap((row) => columns.map((column) => `${level}/${column}_${row}`)).slice(0, MOST_TILES);
}

/** null where it cannot be read: opening the board asks again, and says why. */
async function read<T>(url: string): Promise<T | null> {
  const answer = await fetch(url, { priority: "low" }).catch(() => null);
  return answer?.ok ? ((await answer.json()) as T) : null;
}
