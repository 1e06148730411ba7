"""Why a board cannot be compared with its reference: another pose, another product, too far off.

Cells without a match say little by themselves: where copper is missing the board shows nothing there, and
what it does show matches; another product shows something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import cv2
import numpy as np

from inspect_vit.errors import RegistrationError, WrongPoseError
from inspect_vit.registration_fit import MATCH, Cells
from inspect_vit.registration_grey import Grey, structured_share
from inspect_vit.registration_map import BoardMap
from inspect_vit.registration_pose import OTHERS, UPRIGHT, Pose, cell_size, find_pose

if TYPE_CHECKING:
    from inspect_vit.registration import Registration

Aligner = Callable[[Pose], tuple[BoardMap, Cells]]
MIN_MATCH = 0.55
"""Least share of structured cells that must match."""
SURE_MATCH = 0.85
"""Share of matching cells from which no other pose is tried."""
WORTH_A_LOOK = 0.2
"""Share of matching cells of a coarse level from which another pose is fitted in full."""
POSE_MARGIN = 0.1
"""Another pose must match by so much more to be named."""
MIN_STRUCTURE = 0.02
"""Least share of cells that must show structure. There are about 400 cells."""
SHOWN_MATCH, SHOWN_CELLS = 0.8, 30
"""Share of the cells with structure on the board that must match, and least number of those that do, where
much of the reference is missing."""
ODD_CELLS = 5
"""Cells a side of the square in which another product is looked for."""
ODD_AROUND, ODD_SHARE = 0.5, 0.25
"""Share of the structured cells of such squares that do not match, and share of all that lie in one piece
of them, from which the copper is another product's."""
FAR_TURNS = np.deg2rad([sign * degrees for degrees in np.arange(5, 31, 1.25) for sign in (1, -1)])
"""Turns beyond the limit that are looked for, to tell a turned board from another."""
MAX_STRETCH = 0.03
"""Largest difference of the scales along x and y, as a share."""
MAX_RESIDUAL_PX = 1.5
"""Largest displacement that may be left, root mean square."""
MAX_SHIFT, MAX_TURN_DEGREES, MAX_SCALE = 0.15, 5.0, 0.05
"""Limits: shift as a share of the longer side, turn, and scale as its distance from the expected one."""


def check_structure(level: Grey, what: str) -> None:
    share = structured_share(level, cell_size(level.shape))
    if share < MIN_STRUCTURE:
        raise RegistrationError(
            f"cannot align: only {share:.1%} of the {what} shows structure (limit {MIN_STRUCTURE:.0%}); "
            "send a picture that shows more of the board"
        )


def check_poses(
    golden: Grey, board: Grey, scales: tuple[float, ...], align_as: Aligner, upright: float, cells: Cells
) -> None:
    """Raises RegistrationError when another pose fits clearly better, or when none fits.

    Args:
        golden, board: one coarse level of both, normalised.
        upright: share that matches as the board was posted.
        cells: of the map as it was posted.
    """
    rough = [
        (find_pose(golden, pose.shows(board), scales=scales, tries=1)[1].share(), k)
        for k, pose in enumerate(OTHERS)
    ]
    best, best_share, as_posted = UPRIGHT, upright, cells.share()
    for _, k in sorted((scored for scored in rough if scored[0] >= WORTH_A_LOOK), reverse=True)[:2]:
        share = align_as(OTHERS[k])[1].share()
        if share > best_share + POSE_MARGIN:
            best, best_share = OTHERS[k], share
    named = best is not UPRIGHT and best_share >= MIN_MATCH
    if not named and (upright >= MIN_MATCH or lacks_copper(cells)):
        return
    turned, cells = find_pose(golden, board, scales=scales, turns=FAR_TURNS)
    degrees = turned.angle_degrees()
    least = max(MIN_MATCH, best_share - POSE_MARGIN) if named else MIN_MATCH
    if cells.share() >= least and abs(degrees) > MAX_TURN_DEGREES:
        raise RegistrationError(_turned(degrees, about="about "), match=upright)
    if named:
        # What matches far off the board's place matches by chance, and was not counted in full.
        where = ", though far off its place" if as_posted > upright else ""
        raise WrongPoseError(
            f"{best.name}: {best_share:.0%} of the board's structure matches that way and {as_posted:.0%} as "
            f"it was posted{where} (wanted at least {MIN_MATCH:.0%}); {best.remedy}"
        )
    raise RegistrationError(
        f"another product or another side: {as_posted:.1%} of the board's structure matches the reference "
        f"(wanted at least {MIN_MATCH:.0%}), and no turn or mirroring fits; "
        "send the reference of this product and side, at the same scale",
        match=upright,
    )


def lacks_copper(cells: Cells) -> bool:
    """Whether what the board shows matches, so that what does not is missing: a defect, however large."""
    shown = cells.structured & cells.shown
    matching = int((cells.match[shown] >= MATCH).sum())
    return matching >= max(SHOWN_CELLS, SHOWN_MATCH * int(shown.sum()))


def check_product(cells: Cells) -> None:
    """Raises RegistrationError where a large part of the board, in one piece, shows other copper.

    Edge and tooling holes of a fixture match whatever board lies in it.
    """
    both = cells.structured & cells.shown & cells.expected
    odd = both & (cells.match < MATCH)
    window = (ODD_CELLS, ODD_CELLS)
    around = [
        np.asarray(cv2.blur(mask.astype(np.float32), window, borderType=cv2.BORDER_CONSTANT))
        for mask in (odd, both)
    ]
    part = (around[0] >= ODD_AROUND * around[1]) & (around[1] > 0)
    _, labels = cv2.connectedComponents(part.astype(np.uint8))
    share = np.bincount(labels[odd & part], minlength=1).max() / max(int(both.sum()), 1)
    if share >= ODD_SHARE:
        raise RegistrationError(
            f"another product on the same fixture: over {share:.0%} of the board, in one piece, the copper "
            f"is not that of the reference (limit {ODD_SHARE:.0%}), though {cells.share():.0%} of all "
            "structure matches; send the reference of this product",
            match=cells.share(),
        )


def check_limits(found: Registration, scales: tuple[float, ...]) -> None:
    shift, furthest = float(np.hypot(*found.shift_px)), MAX_SHIFT * max(found.reference_shape)
    stretch = abs(found.scale[0] / found.scale[1] - 1)
    fault = ""
    off = min(max(abs(value / scale - 1) for value in found.scale) for scale in scales)
    if shift > furthest:
        fault = (
            f"cannot align: the board lies {shift:.0f} px off (limit {furthest:.0f} px); move it to its place"
        )
    elif abs(found.turn_degrees) > MAX_TURN_DEGREES:
        fault = _turned(found.turn_degrees)
    elif off > MAX_SCALE:
        fault = (
            f"cannot align: the board's scale is off by {off:.1%} (limit {MAX_SCALE:.0%}); "
            "send pictures of the same resolution"
        )
    elif stretch > MAX_STRETCH:
        fault = (
            f"cannot align: the board looks {stretch:.1%} longer one way than the other (limit "
            f"{MAX_STRETCH:.1%}); do camera and conveyor run at the speed they ran at for the reference?"
        )
    elif found.residual_px > MAX_RESIDUAL_PX:
        fault = (
            f"cannot align: places lie {found.residual_px:.1f} px off after alignment "
            f"(limit {MAX_RESIDUAL_PX:.1f} px); is the board bent, or the reference another revision?"
        )
    if fault:
        raise RegistrationError(fault, match=found.inliers)


def _turned(degrees: float, *, about: str = "") -> str:
    shown = f"{degrees:.0f}" if about else f"{degrees:.1f}"
    return (
        f"cannot align: the board is turned by {about}{shown} degrees "
        f"(limit {MAX_TURN_DEGREES:.0f}); place it as in the reference"
    )
