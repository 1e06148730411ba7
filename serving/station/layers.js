// What can lie over the board, in the order of the keys 1 to 8.

const COMPUTING = "Computing attention\u2026";
/** `link` gives the picture's address from an inspection's links, or nothing where there is none. */
export const LAYERS = [
  { name: "Board", link: () => null },
  { name: "Reference", link: (links) => links.reference && `${links.reference}?format=png` },
  { name: "Defect map", link: (links) => `${links.defect_map}?style=colour` },
  { name: "Overlay", link: (links) => links.overlay, drawsBoxes: true },
  { name: "Attention 4 px", link: (links) => `${links.attention}?level=4`, waiting: COMPUTING },
  { name: "16 px", link: (links) => `${links.attention}?level=16`, waiting: COMPUTING },
  { name: "32 px", link: (links) => `${links.attention}?level=32`, waiting: COMPUTING },
  { name: "Gate", link: (links) => links.gate },
];
