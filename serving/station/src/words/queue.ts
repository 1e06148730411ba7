import { part } from "./part";

export const queue = part({}, {});
