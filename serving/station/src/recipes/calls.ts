// What the recipe pages ask of the service.

import { call, remove, request, send } from "../api";
import type { Preview } from "./preview";
import type { Challenge, ChallengeBoard, RecipeReport, Reference, Settings } from "./wire";

function at(name: string): string {
  return `/v1/recipes/${encodeURIComponent(name)}`;
}

export async function listRecipes(): Promise<RecipeReport[]> {
  return (await request<{ recipes: RecipeReport[] }>("/v1/recipes")).recipes;
}

export function readRecipe(name: string): Promise<RecipeReport> {
  return request(at(name));
}

/** Newest first. */
export async function readRevisions(name: string): Promise<RecipeReport[]> {
  return (await request<{ recipes: RecipeReport[] }>(`${at(name)}/revisions`)).recipes;
}

export function deleteRecipe(name: string): Promise<void> {
  return remove(at(name));
}

/** Settings alone: the golden references stay. `expects`: the revision that was read; another one there is a 409. */
export function storeSettings(name: string, settings: Settings, expects: number): Promise<RecipeReport> {
  return request(at(name), {
    method: "PUT",
    body: JSON.stringify(settings),
    headers: { "Content-Type": "application/json", "If-Match": `"${expects}"` },
  });
}

export interface Pictures {
  /** Golden references, by their names; or good boards, of which the service builds one. */
  field: "reference" | "good";
  files: File[];
}

/** Settings and pictures, which take the place of all references. `expects` 0: the recipe must be new. */
export function storePictures(name: string, settings: Settings, pictures: Pictures, expects: number): Promise<RecipeReport> {
  const form = new FormData();
  form.append("recipe", JSON.stringify(settings));
  for (const file of pictures.files) form.append(pictures.field, file, file.name);
  const condition: Record<string, string> = expects ? { "If-Match": `"${expects}"` } : { "If-None-Match": "*" };
  return request(at(name), { method: "PUT", body: form, headers: condition });
}

/** The pictures of references as files of their names, to be sent again with others. */
export function fetchReferences(references: Reference[]): Promise<File[]> {
  return Promise.all(
    references.map(async ({ name, picture }) => {
      const data = await (await call(picture)).blob();
      return new File([data], `${name}.png`, { type: data.type }); // what follows the last dot is no part of the name
    }),
  );
}

export function readPreview(name: string): Promise<Preview> {
  return request(`${at(name)}/preview`);
}

export function readChallenge(name: string): Promise<Challenge> {
  return request(`${at(name)}/challenge`);
}

export function storeChallenge(name: string, boards: ChallengeBoard[], everyHours: number | null): Promise<Challenge> {
  return send("PUT", `${at(name)}/challenge`, { boards, every_hours: everyHours });
}

export function clearChallenge(name: string, reason: string): Promise<Challenge> {
  return send("POST", `${at(name)}/challenge/clear`, { reason });
}
