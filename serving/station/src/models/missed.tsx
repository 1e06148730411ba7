// The boards on which a candidate does worse than its base, as crops that lead to the board.

import { useSignal } from "@preact/signals";
import { address } from "../api";
import { link } from "../route";
import type { Box } from "../types";
import { number, t } from "../words";
import { inspectionOf } from "./inspections";

const MOST_SHOWN = 10;
const CROP_PX = 96;

export interface Place {
  label: string;
  picture: string;
  group: string;
  box: Box | null;
}

export function Places({ name, places }: { name: string; places: Place[] }) {
  const all = useSignal(false);
  const shown = all.value ? places : places.slice(0, MOST_SHOWN);
  return (
    <div class="missed-boards">
      <h4>{name}</h4>
      <ul>
        {shown.map((place, index) => (
          <li key={index}>
            <PlaceLink place={place} />
          </li>
        ))}
      </ul>
      {shown.length < places.length && (
        <button type="button" class="link" onClick={() => (all.value = true)}>
          {t("models.gate.places.all", { n: number(places.length) })}
        </button>
      )}
    </div>
  );
}

function PlaceLink({ place: { label, picture, group, box } }: { place: Place }) {
  const inspection = inspectionOf(picture);
  const words = (
    <>
      <span>{label}</span>
      <small>{group || picture}</small>
    </>
  );
  if (!inspection) return <span title={picture}>{words}</span>;
  return (
    <a href={link("board", inspection)}>
      {box && <Crop inspection={inspection} box={box} />}
      {words}
    </a>
  );
}

function Crop({ inspection, box }: { inspection: string; box: Box }) {
  const hasFailed = useSignal(false);
  if (hasFailed.value) return <span class="no-crop" />;
  const [left, top, right, bottom] = box;
  // Whole px within the box: more of the board may not be there.
  const inner = [Math.floor(left), Math.floor(top), Math.max(Math.floor(right), Math.floor(left) + 1), Math.max(Math.floor(bottom), Math.floor(top) + 1)];
  const src = address(`/v1/inspections/${inspection}/crops/image`, { box: inner.join(","), size: 2 * CROP_PX });
  return <img src={src} alt="" width={CROP_PX} height={CROP_PX} loading="lazy" onError={() => (hasFailed.value = true)} />;
}
