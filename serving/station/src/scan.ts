// A scanned serial opens the newest inspection of that board.

import { address, request } from "./api";
import { notify, notifyError } from "./notices";
import { go } from "./route";
import type { Report } from "./types";
import { t } from "./words";

let latest = 0;

export async function openSerial(serial: string): Promise<void> {
  const mine = (latest += 1);
  try {
    const query = { serial: serial.trim(), limit: 1 };
    const { inspections } = await request<{ inspections: Report[] }>(address("/v1/inspections", query));
    if (mine !== latest) return; // another board was scanned meanwhile
    const found = inspections[0];
    if (found) go("board", found.id);
    else notify(t("scan.unknown", { serial }), "error");
  } catch (error) {
    if (mine === latest) notifyError(error);
  }
}
