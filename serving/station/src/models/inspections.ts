// Which inspection a picture of an exported data set is of.

const ID = /[0-9a-f]{32}/;

/** null: the picture is not one of this server's inspections. */
export function inspectionOf(picture: string): string | null {
  return ID.exec(picture)?.[0] ?? null;
}
