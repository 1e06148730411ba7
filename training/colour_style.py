"""What boards are made of and how they are lit: solder masks, finishes, holes, cameras."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspect_vit.errors import ConfigError

Rgb = tuple[float, float, float]
"""Shares of 255 as a camera renders them (sRGB), under even light."""


@dataclass(frozen=True)
class MaskColour:
    """A solder mask as seen over copper and over laminate; each tone is drawn between the two given."""

    copper: tuple[Rgb, Rgb]
    laminate: tuple[Rgb, Rgb]


SOLDER_MASKS: dict[str, MaskColour] = {
    "green": MaskColour(((0.02, 0.30, 0.05), (0.25, 0.58, 0.30)), ((0.00, 0.14, 0.02), (0.10, 0.36, 0.20))),
    "blue": MaskColour(((0.06, 0.22, 0.50), (0.16, 0.42, 0.78)), ((0.02, 0.10, 0.26), (0.06, 0.24, 0.50))),
    "red": MaskColour(((0.55, 0.08, 0.08), (0.82, 0.20, 0.18)), ((0.30, 0.02, 0.03), (0.52, 0.10, 0.10))),
    "black": MaskColour(((0.13, 0.13, 0.13), (0.24, 0.23, 0.23)), ((0.04, 0.04, 0.05), (0.11, 0.11, 0.11))),
    "white": MaskColour(((0.80, 0.79, 0.74), (0.93, 0.92, 0.88)), ((0.62, 0.62, 0.56), (0.80, 0.80, 0.74))),
}
NO_MASK = "none"
"""Bare copper artwork, before the solder mask."""
FINISHES: dict[str, tuple[Rgb, Rgb]] = {
    "hasl": ((0.55, 0.53, 0.51), (0.78, 0.77, 0.76)),
    "enig": ((0.78, 0.60, 0.28), (0.92, 0.76, 0.45)),
    "copper": ((0.62, 0.36, 0.24), (0.88, 0.56, 0.42)),
}
HOLES = ("dark", "backlit", "filled")
_LAMINATES: tuple[Rgb, Rgb] = ((0.26, 0.25, 0.12), (0.70, 0.66, 0.46))
_BACKGROUNDS: tuple[Rgb, ...] = (
    (0.04, 0.04, 0.05),
    (0.55, 0.54, 0.58),
    (0.80, 0.80, 0.80),
    (0.15, 0.20, 0.30),
)


@dataclass(frozen=True)
class ColourStyle:
    """One product under one camera: what all its pictures share. Angles in radians, lengths in px."""

    mask: str
    finish: str
    holes: str
    over_copper: Rgb
    over_laminate: Rgb
    metal: Rgb
    laminate: Rgb
    silk: Rgb
    background: Rgb
    light_from: float
    """Direction, in the picture, that slanting light comes from."""
    slant: float
    """How strongly edges of copper catch that light, 0 to 1."""
    gradient: float
    """Brightness differs by this share from one side of the picture to the other."""
    vignette: float
    """Corners are darker by this share."""
    exposure: float
    grain: float
    """Standard deviation of sensor noise at full brightness, share of full scale."""
    blur_px: float
    mottle: float
    """Standard deviation of the slow unevenness of mask and metal, share."""


def draw_style(
    rng: np.random.Generator, *, mask: str | None = None, finish: str | None = None
) -> ColourStyle:
    """A random product and camera; `mask` ("none" for bare artwork) and `finish` are drawn unless given.

    Raises:
        ConfigError: an unknown mask or finish.
    """
    names = (*SOLDER_MASKS, NO_MASK)
    mask = str(rng.choice(names, p=(0.40, 0.12, 0.10, 0.10, 0.10, 0.18))) if mask is None else mask
    finish = str(rng.choice(list(FINISHES))) if finish is None else finish
    for what, found, known in (("mask", mask, names), ("finish", finish, tuple(FINISHES))):
        if found not in known:
            raise ConfigError(f"no {what} is called {found!r}; take one of {', '.join(known)}")
    laminate = _between(*_LAMINATES, rng)
    metal = _between(*FINISHES[finish], rng)
    if mask == NO_MASK:
        over_copper, over_laminate = metal, laminate
    else:
        colour = SOLDER_MASKS[mask]
        # Copper and laminate are seen through the same mask: one place between the tones serves both.
        place = float(rng.uniform())
        over_copper, over_laminate = (
            _between(*tones, rng, place) for tones in (colour.copper, colour.laminate)
        )
    return ColourStyle(
        mask=mask,
        finish=finish,
        holes=str(rng.choice(HOLES, p=(0.45, 0.25, 0.30))),
        over_copper=over_copper,
        over_laminate=over_laminate,
        metal=metal,
        laminate=laminate,
        silk=(0.12, 0.12, 0.12) if mask == "white" else _between((0.72, 0.74, 0.70), (0.95, 0.95, 0.92), rng),
        background=_BACKGROUNDS[int(rng.integers(len(_BACKGROUNDS)))],
        light_from=float(rng.uniform(0, 2 * np.pi)),
        slant=float(rng.uniform(0.1, 1.0)),
        gradient=float(rng.uniform(0.0, 0.25)),
        vignette=float(rng.uniform(0.0, 0.2)),
        exposure=float(rng.uniform(0.8, 1.12)),
        grain=float(rng.uniform(0.004, 0.02)),
        blur_px=float(rng.uniform(0.5, 1.2)),
        mottle=float(rng.uniform(0.004, 0.03)) * (0.4 if mask == "white" else 1.0),
    )


def _between(low: Rgb, high: Rgb, rng: np.random.Generator, place: float | None = None) -> Rgb:
    """A colour about `place` (0..1, random by default) of the way from one to the other."""
    at = float(rng.uniform()) if place is None else place
    mixed = np.array(low) + at * (np.array(high) - np.array(low)) + rng.normal(0.0, 0.012, 3)
    red, green, blue = mixed.clip(0.0, 1.0).tolist()
    return red, green, blue
