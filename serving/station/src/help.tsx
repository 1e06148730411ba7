// "?" lists what the keys do at this moment.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { Dialog } from "./dialog";
import { nameKeys, reachable, type Action } from "./keys";
import { place } from "./route";
import { t, type Key } from "./words";

const NAMED = [" ", "Enter", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home"];

export function KeysHelp() {
  const listed = useSignal<Action[] | null>(null);
  useLayoutEffect(
    () => nameKeys([{ key: "?", words: t("help.title"), run: () => (listed.value = [...reachable()]) }]),
    [t("help.title")],
  );
  // A scan opens its board from here, too.
  useEffect(() => {
    listed.value = null;
  }, [place.value]);
  if (!listed.value) return null;
  const keysOf = Map.groupBy(listed.value, ({ words }) => words);
  return (
    <Dialog title={t("help.title")} wide onClose={() => (listed.value = null)}>
      <dl class="keylist">
        {[...keysOf].map(([words, named]) => (
          <div key={words}>
            <dt>
              {[...new Set(named.map(({ key }) => key))].map((key) => (
                <kbd key={key}>{keyName(key)}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">{t("help.scan")}</p>
    </Dialog>
  );
}

/** What is printed on a key. */
export function keyName(key: string): string {
  const [, modifier, plain] = /^(?:(ctrl|shift)\+)?(.+)$/.exec(key) as unknown as [string, string | undefined, string];
  const named = NAMED.find((name) => name.toLowerCase() === plain);
  const printed = named ? t(`key.${named === " " ? "Space" : named}` as Key) : plain.toUpperCase();
  return modifier ? `${modifier[0]!.toUpperCase()}${modifier.slice(1)}+${printed}` : printed;
}
