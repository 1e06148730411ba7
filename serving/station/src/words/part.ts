/** One page's texts. The compiler refuses a translation that lacks a text or has one too many. */
export function part<const En extends Record<string, string>>(en: En, zh: { [key in keyof En]: string }) {
  return { en: en as { [key in keyof En]: string }, zh };
}
