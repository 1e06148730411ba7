"""The golden reference laid under the posted picture, so that the network compares places and not offsets.

The reference moves, not the board: the board's own pixels are inspected, and resampling softens no defect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError, RegistrationError, WrongPoseError
from inspect_vit.intake import SAME_PICTURE, correlation, pair_faults
from inspect_vit.registration import Golden, Registration, register
from inspect_vit.registration_checks import MIN_MATCH, SURE_MATCH
from inspect_vit.results import Alignment

UNSEEN_PX, UNSEEN_SHARE = 16, 0.01
"""A strip along the reference's edge that the posted picture may miss: px, or a share of the longer side
where that is more."""
STILL_PX = 0.1
"""Where nothing is moved by more, the reference is taken as it is."""
LOST_ROWS = 4
"""Rows that a line scan may lose at one place: a cell of the network's finest level."""
POSTED_FIT, POSTED_MATCH = 0.9, 0.4
"""Correlation, and share of matching structure, from which a pair that cannot be aligned is compared as it
lies."""


@dataclass(frozen=True)
class LaidReference:
    """A reference in the posted picture's frame, or why there is none."""

    picture: NDArray[np.uint8] | None
    """(H, W, 3) uint8 RGB of the posted size; None where it could not be aligned. Where the reference shows
    nothing, the board's own pixels: there, nothing is compared."""
    faults: tuple[str, ...] = ()
    """Why the board must not be passed on this reference, in words."""
    alignment: Alignment | None = None
    registration: Registration | None = None
    lacks: str = ""
    """In words, how much of the copper is not there, where that is so much that the board must fail."""


def lay_under(
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8],
    *,
    golden: Golden | None = None,
    px_per_mm: float | None = None,
    ignored: NDArray[np.bool_] | None = None,
) -> LaidReference:
    """Register a board with its reference and lay the reference under it.

    Args:
        image: (H, W, 3) uint8 RGB, the posted picture.
        reference: (H', W', 3) uint8 RGB, of any size.
        golden: what `registration.prepare` made of the reference, where that was kept.
        px_per_mm: pixels of the reference per millimetre.
        ignored: (H', W'), where the reference need not be seen.

    Raises:
        ImageError: not a picture of that form.
    """
    if np.array_equal(image, reference):
        return LaidReference(None, (SAME_PICTURE,))
    try:
        found = register(image, golden or reference, px_per_mm=px_per_mm)
    except WrongPoseError as error:
        return LaidReference(None, (str(error),))
    except RegistrationError as error:
        return _taken_as_posted(image, reference, error)
    if _lies_still(found):
        picture, covered = reference, np.ones(found.board_shape, np.bool_)
    else:
        picture, covered = found.bring(reference)
        np.copyto(picture, image, where=~covered[..., None])
    return LaidReference(
        picture,
        faults=(*unseen_faults(found, ignored), *pair_faults(image, picture)),
        alignment=Alignment(
            residual_px=found.residual_px,
            residual_mm=found.residual_mm,
            shift_px=float(np.hypot(*found.shift_px)),
            turn_degrees=found.turn_degrees,
            covered=float(covered.mean()),
        ),
        registration=found,
        lacks=_lacks(found),
    )


def _lacks(found: Registration) -> str:
    """Registration accepts a match this low only where what the board shows matches."""
    if found.inliers >= MIN_MATCH:
        return ""
    return (
        f"process failure: {found.missing:.0%} of what the reference shows is not on the board "
        f"({found.inliers:.0%} of the structure matches)"
    )


def _taken_as_posted(
    image: NDArray[np.uint8], reference: NDArray[np.uint8], why: RegistrationError
) -> LaidReference:
    """What to do where registration finds no map: pictures that fit as they lie are compared as they lie.

    A few shapes on a bare board, moved against each other, have no map and may yet be inspected: what is off
    is called, not missed.
    """
    fit = correlation(image, reference) if image.shape == reference.shape else None
    if fit is None or fit < POSTED_FIT or why.match < POSTED_MATCH:
        return LaidReference(None, (str(why),))
    note = f"taken as posted (correlation {fit:.2f}): {why}"
    return LaidReference(reference, alignment=Alignment(None, 0.0, 0.0, 1.0, note=note))


def _lies_still(found: Registration) -> bool:
    """Whether board and reference are in register already, so that moving it would only soften it."""
    if found.board_shape != found.reference_shape:
        return False
    points = _grid(found.board_shape)
    return float(np.abs(found.to_reference(points) - points).max()) < STILL_PX


def _grid(shape: tuple[int, int]) -> NDArray[np.float64]:
    """(n, 2) points (x, y) spread over a picture, its corners among them."""
    x, y = (axis.reshape(-1) for axis in np.meshgrid(*(np.linspace(0, side - 1, 33) for side in shape[::-1])))
    return np.stack((x, y), -1)


def as_posted(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> LaidReference:
    """A pair that is known to be in register, or is to be measured as it lies.

    Raises:
        ImageError: pictures of different sizes.
    """
    if image.shape != reference.shape:
        raise ImageError(
            f"reference has {reference.shape[1]}x{reference.shape[0]} px, the image "
            f"{image.shape[1]}x{image.shape[0]}; pictures taken as aligned have one size"
        )
    same = np.array_equal(image, reference)
    return LaidReference(reference, (SAME_PICTURE,) if same else pair_faults(image, reference))


def unseen_faults(found: Registration, ignored: NDArray[np.bool_] | None = None) -> tuple[str, ...]:
    """What of the reference the posted picture does not show, in words; empty where that is little.

    ignored: (H, W) of the reference, where nothing need be seen.
    """
    faults = []
    unseen = unseen_depth_px(found, ignored)
    limit = max(UNSEEN_PX, UNSEEN_SHARE * max(found.reference_shape))
    uncompared = uncompared_depth_px(found)
    if uncompared > limit:
        faults.append(
            f"the reference shows {_covered_share(found):.1%} of the picture: a strip of {uncompared:.0f} px "
            f"has nothing to be compared with (limit {limit:.0f} px); send a reference of the whole view"
        )
    if unseen > limit:
        faults.append(
            f"the picture shows {found.coverage:.1%} of the reference: a strip of {unseen:.0f} px is out of "
            f"sight (limit {limit:.0f} px); place the board as in the reference, or widen the view"
        )
    above = [0.0, *(slip.offset[1] for slip in found.slips)]
    if found.inliers < SURE_MATCH:  # where much does not match, a slip explains it no better than defects do
        return tuple(faults)
    for slip, offset in zip(found.slips, above, strict=False):
        lost = slip.offset[1] - offset
        if lost > LOST_ROWS:
            faults.append(
                f"the scan lost {lost:.0f} rows at row {slip.row:.0f} (limit {LOST_ROWS}): that strip was "
                "not seen; scan the board again, and check the encoder"
            )
    return tuple(faults)


def uncompared_depth_px(found: Registration) -> float:
    """How far into the posted picture reaches what lies beyond the reference's edges, px of the reference."""
    places = found.to_reference(_grid(found.board_shape))
    last = np.array(found.reference_shape[::-1]) - 1
    return max(float(np.maximum(-places, places - last).max()), 0.0)


def _covered_share(found: Registration) -> float:
    """Share of the posted picture that the reference shows, 0..1."""
    places = found.to_reference(_grid(found.board_shape))
    last = np.array(found.reference_shape[::-1]) - 0.5
    return float(((places >= -0.5) & (places <= last)).all(-1).mean())


def unseen_depth_px(found: Registration, ignored: NDArray[np.bool_] | None = None) -> float:
    """How far into the reference reaches what lies beyond the posted picture's edges, px of the reference."""
    points = _grid(found.reference_shape)
    if ignored is not None:
        x, y = np.rint(points).astype(np.intp).T
        points = points[~ignored[y, x]]
        if not len(points):
            return 0.0
    places = found.to_board(points)
    last = np.array(found.board_shape[::-1]) - 1
    beyond = float(np.maximum(-places, places - last).max())
    # px of the posted picture to px of the reference
    return max(beyond, 0.0) * float(np.sqrt(abs(np.linalg.det(found.matrix[:2, :2]))))
