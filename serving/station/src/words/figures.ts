import { part } from "./part";

export const figures = part({}, {});
