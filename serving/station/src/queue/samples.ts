// The sample boards that come with the server.

import { call, newKey, request } from "../api";
import type { Report } from "../types";

export interface Sample {
  name: string;
  image: string;
  reference: string;
}

export function listSamples(): Promise<Sample[]> {
  return request<Sample[]>("/station/samples.json");
}

/** Inspect a sample against its golden reference, as the line would; its name is its serial. */
export async function inspectSample({ name, image, reference }: Sample): Promise<Report> {
  const form = new FormData();
  for (const [field, url] of Object.entries({ image, reference })) {
    form.append(field, await (await call(url)).blob(), url.split("/").at(-1));
  }
  form.append("serial", name);
  return request<Report>("/v1/inspect", { method: "POST", body: form, headers: { "Idempotency-Key": newKey() } });
}
