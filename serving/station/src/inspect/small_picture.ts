// A small picture of a chosen file, made here: what is chosen is seen before it is sent.

const SIDE_PX = 128;

/** Address of the picture, or null where the browser cannot decode the file (TIFF, or no picture at all). */
export async function smallPicture(file: File): Promise<string | null> {
  try {
    // Decoded at this size, so that a batch of large boards does not fill the memory.
    const bitmap = await createImageBitmap(file, { resizeWidth: SIDE_PX, resizeQuality: "medium" });
    const canvas = document.createElement("canvas");
    canvas.width = bitmap.width;
    canvas.height = Math.min(bitmap.height, SIDE_PX);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    bitmap.close();
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve));
    return blob && URL.createObjectURL(blob);
  } catch {
    return null;
  }
}
