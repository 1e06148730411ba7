import { part } from "./part";

export const recipes = part({}, {});
