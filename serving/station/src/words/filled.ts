// A text with its gaps filled; in a file of its own, so that the rule can be tried without a page.

export type Values = Record<string, string | number>;

/** {name} is the value; {name|board|boards} the word for one of them or for any other number. */
export function filled(text: string, values: Values): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one === undefined) return String(value);
    return String(value) === "1" ? one : many!;
  });
}
