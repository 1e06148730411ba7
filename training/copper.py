"""Where the copper is in a picture of a good board: scans in two tones, and colour or grey photographs.

    found = segment_copper(picture)
    drawn = draw_defects(found.copper, rng, 6, free=found.known)

Photographs are told apart in steps: the ground of the picture (mask, or laminate and copper) from what lies
on it (bare metal, silk, holes, background) by colour; then two tones of that ground, after uneven light is
taken out; then which of the two is copper. What is not sure is said, and what cannot be done is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.ground import Ground, find_ground
from training.layers import Mask
from training.tones import split_tones

Which = Literal["auto", "dark", "light"]
MIN_SURENESS = 0.75
_TWO_TONES_SHARE = 0.97
"""A scan has this share of its pixels near black or near white."""
_PALE_FACTOR = 0.8
"""Of the sureness under a white mask: one in five of those drawn was read quite wrong."""
_LEAST_SHARE = 0.01
"""Each of copper and laminate covers at least this share of a picture that can be told apart."""


@dataclass(frozen=True)
class CopperMap:
    """What was found in a picture. Masks are (H, W)."""

    copper: Mask
    known: Mask
    """Where copper and laminate are told apart; elsewhere (silk, pads, background) `copper` is a guess."""
    kind: Literal["scan", "photograph"]
    copper_is: Literal["dark", "light"]
    sureness: float
    """Chance, 0 to 1, that a known pixel is on the right side, times that for which tone is copper."""
    notes: tuple[str, ...] = ()
    """What lowers the sureness, in words."""


def segment_copper(
    picture: NDArray[np.uint8], *, copper: Which = "auto", min_sureness: float = MIN_SURENESS
) -> CopperMap:
    """Find the copper of a good board.

    Args:
        picture: (H, W) grey or (H, W, 3) RGB, 0..255, at least 32 px a side.
        copper: which of the two tones is copper; "auto" judges by the picture.
        min_sureness: less is refused.

    Raises:
        ImageError: no two tones, too unsure of them, or of which is copper. It says which, and what to do.
    """
    grey = picture if picture.ndim == 2 else np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)
    if min(grey.shape) < 32:
        raise ImageError(f"the picture has {grey.shape[1]} x {grey.shape[0]} px; give at least 32 a side")
    found = _in_scan(grey, copper) if _is_scan(picture) else _in_photograph(picture, copper)
    for mask, name in ((found.copper, "copper"), (~found.copper, "laminate")):
        share = float(mask[found.known].mean()) if found.known.any() else 0.0
        if share < _LEAST_SHARE:
            raise ImageError(
                f"{share:.1%} of the picture looks like {name}; give one that shows both copper and laminate"
            )
    if found.sureness < min_sureness:
        raise ImageError(
            f"cannot tell copper from laminate: sureness {found.sureness:.2f}, wanted {min_sureness:.2f} "
            f"({'; '.join(found.notes) or 'the tones overlap'}); give a sharper, evenly lit picture, or say "
            "which tone is copper (dark or light)"
        )
    return found


def _is_scan(picture: NDArray[np.uint8]) -> bool:
    """Black and white but for JPEG noise."""
    grey = picture if picture.ndim == 2 else picture.max(axis=2)
    if picture.ndim == 3 and float((np.ptp(picture, axis=2) > 40).mean()) > 0.01:
        return False
    near = (grey < 48) | (grey > 207)
    return bool(near.mean() >= _TWO_TONES_SHARE) and bool((grey < 48).any()) and bool((grey > 207).any())


def _in_scan(grey: NDArray[np.uint8], copper: Which) -> CopperMap:
    dark = grey < 128
    copper_is, chance, notes = _which_is_copper(dark, copper)
    found = dark if copper_is == "dark" else ~dark
    return CopperMap(found, np.ones_like(found), "scan", copper_is, chance, notes)


def _which_is_copper(dark: Mask, asked: Which) -> tuple[Literal["dark", "light"], float, tuple[str, ...]]:
    """The tone that is copper by shape, and the chance that this is right.

    Laminate surrounds every net, so most of it is one piece, while copper is in many. Of the training
    templates of DeepPCB this told 86 of 100 right; the chance follows from how often a lead was right there.
    """
    if asked != "auto":
        return asked, 1.0, ()
    lead = _largest_share(~dark, 4) - _largest_share(dark, 8)
    rival = _largest_share(dark, 4) - _largest_share(~dark, 8)
    advantage = (lead - rival) / 2
    chance = float(1.0 - 0.5 * np.exp(-((advantage / 0.22) ** 2)))
    notes = () if chance > 0.95 else (f"which tone is copper is a guess ({chance:.2f} by its shapes)",)
    return ("dark" if advantage >= 0 else "light"), chance, notes


def _largest_share(mask: Mask, connectivity: int) -> float:
    """Share of the mask that its largest piece holds."""
    stats = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=connectivity)[2]
    areas = stats[1:, cv2.CC_STAT_AREA]
    return float(areas.max() / areas.sum()) if len(areas) else 0.0


def _in_photograph(picture: NDArray[np.uint8], copper: Which) -> CopperMap:
    colour = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    ground = find_ground(colour)
    tones = split_tones(colour, ground.mask)
    notes: list[str] = []
    if tones.accuracy < 0.95:
        notes.append(f"the two tones overlap: {1 - tones.accuracy:.0%} of pixels lie on the wrong side")
    accuracy = tones.accuracy * (_PALE_FACTOR if ground.pale else 1.0)
    if ground.pale:
        notes.append("a white mask shows little of its copper")
    copper_is, chance = _which_tone(colour, ground, tones.light, copper)
    if chance < 0.95:
        notes.append(f"which tone is copper is a guess ({chance:.2f})")
    found = tones.light if copper_is == "light" else ~tones.light
    found = np.where(ground.mask, found, ground.metal)
    # Bare laminate around pads parts them from their tracks by a few px.
    closed = cv2.morphologyEx(found.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8)) > 0
    known = ground.mask & tones.sure
    return CopperMap(
        copper=np.where(known, found, closed),
        known=known,
        kind="photograph",
        copper_is=copper_is,
        sureness=float(accuracy * chance),
        notes=tuple(notes),
    )


def _which_tone(
    colour: NDArray[np.uint8], ground: Ground, light: Mask, asked: Which
) -> tuple[Literal["dark", "light"], float]:
    """Copper reflects more than laminate through a mask; bare, it is the redder or, tinned, the greyer."""
    if asked != "auto":
        return asked, 1.0
    if ground.masked:
        return "light", 0.97
    tones = [np.median(colour[ground.mask & side], axis=0).astype(float) for side in (light, ~light)]
    redness = [float((tone[0] - tone[1]) / max(tone.max(), 1.0)) for tone in tones]
    if abs(redness[0] - redness[1]) > 0.08:
        return ("light" if redness[0] > redness[1] else "dark"), 0.95
    return "light", 0.80
