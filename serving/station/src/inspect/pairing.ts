// Which of several files is a board and which its golden reference, told from their names.
//
// NAME_test or NAME is a board; NAME_temp, NAME_ref, NAME_reference, NAME_golden is its reference. A file called just
// "golden", or the only reference of a batch if it fits no board by name, is the reference of all.

const REFERENCE = /^(?:(.+)[_\-. ])?(?:temp|template|ref|reference|golden)$/i;
const BOARD = /^(.+)[_\-. ]test$/i;
const MAX_SERIAL_CHARS = 200; // the service takes no longer one

export function stemOf(name: string): string {
  return name.replace(/\.[^.]+$/, "");
}

/** What the reference is of, in lower case; "" for all boards; null where the name is that of a board. */
export function ownerOf(name: string): string | null {
  const found = REFERENCE.exec(stemOf(name));
  return found ? (found[1] ?? "").toLowerCase() : null;
}

export function serialOf(name: string): string {
  const stem = stemOf(name);
  return (BOARD.exec(stem)?.[1] ?? stem).slice(0, MAX_SERIAL_CHARS);
}

/** For each board, by file name, its reference among `references`, or null. */
export function pair<F extends { name: string }>(boards: string[], references: F[]): (F | null)[] {
  const owned = boards.map((board) => {
    const names = [stemOf(board).toLowerCase(), serialOf(board).toLowerCase()];
    return references.find((one) => names.includes(ownerOf(one.name) || "\n")) ?? null;
  });
  const only = references.length === 1 && owned.every((one) => one === null) ? references[0] : undefined;
  const common = references.find((one) => ownerOf(one.name) === "") ?? only ?? null;
  return owned.map((one) => one ?? common);
}
