// The sample boards that the server brings, as files like those that are dropped.

import { call, request } from "../api";
import { addFiles, chooseRecipe, start } from "./batch";

interface Sample {
  name: string;
  image: string;
  reference: string;
}

export async function inspectSamples(): Promise<void> {
  const samples = await request<Sample[]>("/station/samples.json");
  const files = samples.flatMap(({ image, reference }) => [image, reference]).map(async (address) => {
    const picture = await (await call(address)).blob();
    return new File([picture], decodeURIComponent(address.split("/").at(-1)!), { type: picture.type });
  });
  chooseRecipe(""); // they are boards of no recipe
  addFiles(await Promise.all(files));
  start();
}
