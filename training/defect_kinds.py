"""The classes of defects that are drawn: what each does to the copper, and how large it usually is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BOX_MARGIN_PX = 10
"""Boxes are this much wider than the mask on each side: the median margin of DeepPCB's annotators."""


@dataclass(frozen=True)
class DefectKind:
    """What a class of defect does to a board, and how large it is."""

    removes: bool
    """Takes copper away; else adds copper."""
    site: Literal["across", "inward", "inside", "hole"]
    """Where it lies in what it changes: from side to side, in from an edge, free of all edges, in a hole."""
    touches: int | None
    """Pieces of the other material next to it; None: any."""
    leaves: int
    """Pieces of its own material that are left next to it; for a short, nets that it joins."""
    length_px: tuple[float, float]
    """Median and spread (standard deviation of the logarithm) of its length, at 48 px per mm."""
    width_px: tuple[float, float]


# Chosen so that defects drawn into the training templates of DeepPCB measure as its own do: quartiles of the
# longer side of the bounds in px, real / drawn, are open 13 19 32 / 13 20 33, short 16 23 32 / 18 26 41,
# mousebite 10 13 18 / 10 14 18, spur 11 13 17 / 11 15 19, copper 15 19 24 / 14 19 26, pin-hole 13 17 22 /
# 12 17 22. Measured: the largest blob of difference in a box, in register to the pixel, after a 2x2 opening.
DEFECT_KINDS: dict[str, DefectKind] = {
    "open": DefectKind(True, "across", None, 2, (17.0, 0.62), (8.0, 0.42)),
    "short": DefectKind(False, "across", None, 2, (19.0, 0.60), (7.0, 0.50)),
    "mousebite": DefectKind(True, "inward", 1, 1, (15.0, 0.50), (7.5, 0.40)),
    "spur": DefectKind(False, "inward", 1, 1, (14.0, 0.48), (8.5, 0.36)),
    "copper": DefectKind(False, "inside", 0, 1, (21.0, 0.45), (12.5, 0.38)),
    "pin-hole": DefectKind(True, "inside", 0, 1, (20.0, 0.48), (10.5, 0.44)),
    "missing-hole": DefectKind(False, "hole", 1, 0, (0.0, 0.0), (0.0, 0.0)),
}
"""Size of a missing hole: that of the hole."""
COPPER_KINDS = tuple(label for label, kind in DEFECT_KINDS.items() if kind.site != "hole")
"""Classes that need to know nothing but the copper."""
