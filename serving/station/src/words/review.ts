import { part } from "./part";

export const review = part({}, {});
