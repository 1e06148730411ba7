/** What file choosers offer: the formats that the service reads. */
export const PICTURES = "image/png,image/jpeg,image/bmp,image/tiff,.tif,.tiff,.bmp";
