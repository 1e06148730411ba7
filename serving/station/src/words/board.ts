import { part } from "./part";

export const board = part({}, {});
