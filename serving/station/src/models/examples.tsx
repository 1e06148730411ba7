// The examples of one class as crops: what a model learns from, and what it will be measured on.

import { useSignal } from "@preact/signals";
import { useLoaded } from "../figures/load";
import { Refusal } from "../refusal";
import { link } from "../route";
import { number, t } from "../words";
import { examplesOf } from "./calls";
import type { Example, Examples, Part } from "./wire";

const MOST = 60;
const CROP_PX = 92;
const PARTS: Part[] = ["train", "acceptance"];

export function ExampleCrops({ label, recipe }: { label: string; recipe: string }) {
  const { data, error, isLoading } = useLoaded<Examples>(examplesOf(label, recipe, MOST));
  if (error) return <Refusal error={error} />;
  if (!data) return isLoading ? <p class="empty">{t("shell.loading")}</p> : null;
  if (data.examples.length === 0) {
    return (
      <div class="empty">
        <h2>{t("retrain.noexamples", { label })}</h2>
        <p>{t("retrain.noexamples.words")}</p>
        <p>
          <a href={link("queue")}>{t("retrain.toqueue")}</a>
        </p>
      </div>
    );
  }
  return (
    <>
      {PARTS.map((part) => (
        <Group key={part} part={part} label={label} examples={data.examples.filter((one) => one.part === part)} />
      ))}
      {data.examples.length === MOST && <small>{t("retrain.newest", { n: number(MOST) })}</small>}
    </>
  );
}

function Group({ part, label, examples }: { part: Part; label: string; examples: Example[] }) {
  return (
    <section class="crops-of" data-part={part} aria-label={t(`retrain.part.${part}`)}>
      <h3>
        {t(`retrain.part.${part}`)} <small>{number(examples.length)}</small>
      </h3>
      <p class="muted">{t(`retrain.part.${part}.words`)}</p>
      <ul>
        {examples.map((example, index) => (
          <li key={index}>
            <a href={link("board", example.inspection)} title={t(`retrain.kind.${example.kind}`)}>
              <Crop src={example.crop} alt={t("retrain.crop", { label, serial: nameOf(example) })} />
              <small>{nameOf(example)}</small>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function nameOf({ serial, inspection }: Example): string {
  return serial ?? t("queue.noserial", { id: inspection.slice(-6) });
}

function Crop({ src, alt }: { src: string; alt: string }) {
  const hasFailed = useSignal(false);
  if (hasFailed.value) return <span class="no-crop">{t("board.crop.missing")}</span>;
  return <img src={src} alt={alt} width={CROP_PX} height={CROP_PX} loading="lazy" onError={() => (hasFailed.value = true)} />;
}
