// One place of the board at its own scale: as it is, as it should be, and what of it differs.

import { useSignal } from "@preact/signals";
import type { Box } from "../types";
import { t } from "../words";
import { cropOf } from "./layers";
import { grid, hasReference, isSeen, squareAround } from "./state";

/** As sharp as the largest on the page. */
const CROP_PX = 150;
const LEAST_SIDE_PX = 48;
type CropLayer = "image" | "reference" | "difference";
const LAYERS: CropLayer[] = ["image", "reference", "difference"];

export function Crops({ box, layers = LAYERS }: { box: Box; layers?: CropLayer[] }) {
  const shown = squareAround(box, LEAST_SIDE_PX, grid.value!);
  return (
    <div class="crops">
      {layers
        .filter((layer) => layer === "image" || hasReference.value)
        .map((layer) => (
          <Crop key={layer} name={t(`board.name.${layer}`)} src={cropOf(layer, shown, CROP_PX)} />
        ))}
    </div>
  );
}

function Crop({ name, src }: { name: string; src: string }) {
  const hasFailed = useSignal(false);
  return (
    <figure>
      {hasFailed.value || !isSeen.value ? (
        <div class="missing">{hasFailed.value && t("board.crop.missing")}</div>
      ) : (
        <img src={src} alt={name} onError={() => (hasFailed.value = true)} />
      )}
      <figcaption>{name}</figcaption>
    </figure>
  );
}
