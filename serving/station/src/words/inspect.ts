import { part } from "./part";

export const inspect = part({}, {});
