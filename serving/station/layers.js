// What can lie over the board, in the order of the keys 1 to 9 and 0.

const COMPUTING = "Computing attention\u2026";
const of = (defect) => (defect === null ? "" : `&defect=${defect}`);
/**
 * `link` gives the picture's address from an inspection's links and the selected defect's id or null, or nothing
 * where there is none; `map` names what is tested of it. A layer that `needsDefects` explains a call.
 */
export const LAYERS = [
  { name: "Board", link: () => null, isBoard: true },
  { name: "Reference", link: (links) => links.reference && `${links.reference}?format=png` },
  { name: "Defect map", link: (links) => `${links.defect_map}?style=colour`, map: "defect_map" },
  { name: "Overlay", link: (links) => links.overlay, map: "defect_map", drawsBoxes: true },
  attention("Attention 4 px", 4),
  attention("16 px", 16),
  attention("32 px", 32),
  { name: "Gate", link: (links) => links.gate, map: "gate" },
  explanation("Roll-out", "rollout"),
  explanation("Relevance", "relevance"),
];

/** Whether an inspection has a layer: the board always, a reference if one was posted. */
export function isThere(layer, { links, defects }) {
  if (layer.isBoard) return true;
  return Boolean(layer.link(links, null)) && (defects.length > 0 || !layer.needsDefects);
}

function attention(name, level) {
  const link = (links, defect) => `${links.attention}?level=${level}${of(defect)}`;
  return { name, link, map: `attention_${level}`, waiting: COMPUTING };
}

function explanation(name, method) {
  const link = (links, defect) => `${links.attention}?method=${method}${of(defect)}`;
  return { name, link, map: method, needsDefects: true, waiting: "Computing\u2026" };
}
