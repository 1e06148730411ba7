"""Fine alignment: Gauss-Newton on locally normalised pictures, summed over cells.

With R the reference, W the board warped into its frame and g the mean of their gradients, a displacement u
explains e = R - W where g u = e. Models that move each square cell as one need only the sums of g g' and g
e over cells: 8 parameters of a projective map, an offset per slip, the control points of a local field. The
mean of both gradients converges fast and from further away (Benhimane and Malis 2004, "Real-time image-
based tracking of planes using efficient second-order minimization"). Cells without structure in one
direction weigh nothing in that direction; there, priors keep the map a shift and a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.registration_grey import NORMALISE_PX, STRUCTURE, Grey
from inspect_vit.registration_map import BoardMap, Floats, Slip, project, take

CLIP = 1.5
"""Differences of normalised pictures beyond this count as this: a defect is one, and pulls no harder."""
HALF_PX, ALIKE_PX = NORMALISE_PX // 2, 1
"""Half of that window, and by how many pixels two windows may be cut off differently to be comparable."""
CORRELATED_PX = 256.0
"""Neighbouring pixels differ together, where an edge is etched differently or at a defect: so many count as
one independent observation. On boards with little structure this gives the priors their say; others do not
notice."""
LEAST_NOISE = 0.01
"""Least variance of a pixel's difference that is believed."""
MATCH = 0.5
"""Cells whose normalised correlation is this or more show the same thing."""
PRIOR_PX = np.array([10.0, 10.0, 40.0, 4.0, 1.5, 1.0, 0.8, 0.8])
"""Standard deviation expected at the edge of a 640 px board, px: shift x, y, turn, scale, stretch, shear,
perspective x, y. Perspective and shear are slight; a board is stretched by a few tenths of a percent. The
shift is about where the search found it: along tracks that all run one way it stays there."""
SLIP_PRIOR_PX = 2.0
"""Standard deviation expected of a slip's offset about where it was found, pixels of the level."""
ENOUGH_PX = 0.02
"""A step that moves nothing by more ends a fit, pixels of the level."""

Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class Cells:
    """Sums over (rows, columns) cells of the reference's frame. Lengths are pixels of the level."""

    size: int
    tensor: Floats
    """(rows, columns, 2, 2): sum of g g'."""
    pull: Floats
    """(rows, columns, 2): sum of g e."""
    match: Floats
    """(rows, columns): normalised correlation of R and W, -1..1; 0 without structure."""
    structured: NDArray[np.bool_]
    """(rows, columns): structure in the reference or the board, and more than half comparable."""
    expected: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    """(rows, columns): structure in the reference; structure in the board."""
    noise: float
    """Variance of a pixel's difference, from the cells that fit best."""

    def centres(self) -> Floats:
        """(rows * columns, 2) pixels of the reference."""
        rows, columns = self.match.shape
        y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
        return (np.stack((x, y), -1).reshape(-1, 2) + 0.5) * self.size - 0.5

    def weights(self) -> Floats:
        """(rows * columns,) trust in each cell: a cell that shows something else has little to say."""
        return np.where(self.structured, np.clip((self.match - 0.2) / 0.8, 0.02, 1) ** 2, 0).reshape(-1)

    def num_matching(self) -> int:
        """How many structured cells match."""
        return int((self.match[self.structured] >= MATCH).sum())

    def share(self) -> float:
        """Share of the structured cells that match."""
        num = int(self.structured.sum())
        return self.num_matching() / num if num else 0.0

    def missing(self) -> float:
        """Share of the reference's structured cells where the board shows nothing."""
        bare = self.structured & self.expected & ~self.shown
        return float(bare.sum() / max(int(self.expected.sum()), 1))

    def misfit(self) -> float:
        """Mean of 1 - match over the structured cells."""
        return float((1 - self.match[self.structured]).mean()) if self.structured.any() else 2.0

    def residual_px(self) -> float:
        """Displacement left in matching cells: root mean square of all but the worst tenth."""
        left = self._displacement(self.tensor, self.pull)
        good = np.sort(left[self.structured & (self.match >= MATCH)])
        return float(np.sqrt((good[: -(-len(good) * 9 // 10)] ** 2).mean())) if len(good) else float("inf")

    def common_px(self) -> float:
        """The same for displacements that 4x4 neighbours share: what a smooth field could take away."""
        trust = self.weights().reshape(self.match.shape)
        sums = [
            np.asarray(cv2.blur(values * trust, (4, 4), borderType=cv2.BORDER_REFLECT), np.float64)
            for values in (
                *np.moveaxis(self.tensor.reshape(*trust.shape, 4), -1, 0),
                *np.moveaxis(self.pull, -1, 0),
            )
        ]
        tensor = np.stack(sums[:4], -1).reshape(*trust.shape, 2, 2)
        left = self._displacement(tensor * 16, np.stack(sums[4:], -1) * 16)
        return float(np.sqrt((left[self.structured] ** 2).mean())) if self.structured.any() else 0.0

    def _displacement(self, tensor: Floats, pull: Floats) -> Floats:
        """Lengths, px, by least squares, held near 0 in directions without structure."""
        held = tensor + self.size * np.eye(2)
        return np.asarray(np.linalg.norm(np.linalg.solve(held, pull[..., None])[..., 0], axis=-1))


def sample(picture: Grey, board_map: BoardMap) -> tuple[Grey, Mask, Mask]:
    """The board in the reference's frame, linearly interpolated; 1 where it is covered; 1 where comparable.

    A pixel is comparable where the window that it was normalised over is cut off by the board's edges as it
    is by the reference's: what one picture alone shows beyond the other's edge, a table or another board,
    reaches half a window into what both show.
    """
    height, width = board_map.reference_shape
    cuts, own = _cuts(*picture.shape), _cuts(height, width)
    out = np.zeros((height, width), np.float32)
    seen, alike = np.zeros((height, width), np.uint8), np.zeros((height, width), np.uint8)
    if board_map.field is not None:
        for rows, places, inside in board_map.dense():
            out[rows] = take(picture, places, cv2.INTER_LINEAR)
            seen[rows] = inside
            alike[rows] = inside & _alike(take(cuts, places, cv2.INTER_NEAREST), own[rows])
        return out, seen, alike
    for first, last, offset in board_map.parts():
        top = 0 if np.isinf(first) else round(first)
        bottom = len(picture) if np.isinf(last) else round(last)
        part = picture[top:bottom]
        if not len(part):
            continue
        move = np.array([[1, 0, offset[0]], [0, 1, offset[1] + top], [0, 0, 1]])
        matrix = board_map.matrix @ move
        warped = cv2.warpPerspective(part, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
        found = np.asarray(
            cv2.warpPerspective(cuts[top:bottom], matrix, (width, height), flags=cv2.INTER_NEAREST), np.uint8
        )
        shown, comparable = (found[..., 0] > 0).astype(np.uint8), _alike(found, own)
        if not board_map.slips:
            return np.asarray(warped, np.float32), shown, comparable
        more = cv2.compare(shown, seen, cv2.CMP_GT)
        cv2.copyTo(warped, more, out)
        cv2.copyTo(comparable, more, alike)
        seen = np.maximum(seen, shown)
    return out, seen, alike


@lru_cache(maxsize=8)
def _cuts(height: int, width: int) -> Mask:
    """(height, width, 2): how a picture's edges cut the window around each pixel, along x and y.

    HALF_PX + 1 where they do not: less by each pixel cut off left or above, more by each right or below.
    """
    x, y = (
        HALF_PX + 1 + np.minimum(np.arange(side), HALF_PX) - np.minimum(np.arange(side)[::-1], HALF_PX)
        for side in (width, height)
    )
    return np.stack(np.broadcast_arrays(x[None], y[:, None]), -1).astype(np.uint8)


def _alike(cuts: Mask, own: Mask) -> Mask:
    """1 where windows are cut alike. `cuts` is 0 where the board shows nothing."""
    x, y = cv2.split(cv2.absdiff(cuts, own))
    return (np.maximum(x, y) <= ALIKE_PX).astype(np.uint8)


def measure(reference: Grey, board: Grey, board_map: BoardMap, size: int) -> Cells:
    """Sums over cells of `size` px of the level; pictures are normalised."""
    warped, _, alike = sample(board, board_map)
    rows, columns = (max(side // size, 1) for side in reference.shape)
    height, width = min(rows * size, reference.shape[0]), min(columns * size, reference.shape[1])

    def total(values: Grey) -> Floats:
        mean = cv2.resize(values[:height, :width], (columns, rows), interpolation=cv2.INTER_AREA)
        return np.asarray(mean, np.float64).reshape(rows, columns)

    mask = alike.astype(np.float32)
    both = (reference + warped) * 0.5
    gx = cv2.Scharr(both, cv2.CV_32F, 1, 0, scale=1 / 32) * mask
    gy = cv2.Scharr(both, cv2.CV_32F, 0, 1, scale=1 / 32) * mask
    plain = (reference - warped) * mask
    error = np.clip(plain, -CLIP, CLIP)
    area = size * size
    xx, xy, yy = total(gx * gx), total(gx * gy), total(gy * gy)
    tensor = np.stack((xx, xy, xy, yy), -1).reshape(rows, columns, 2, 2) * area
    pull = np.stack((total(gx * error), total(gy * error)), -1) * area
    coverage = total(mask)
    golden, found = total(reference * reference * mask), total(warped * warped * mask)
    strength = np.maximum(golden, found)
    inner = (golden + found - total(plain * plain)) / 2
    match = inner / np.maximum(np.sqrt(golden * found), 1e-9)
    structured = (strength > STRUCTURE) & (coverage > 0.5)
    match = np.where(np.sqrt(golden * found) > 0.1 * STRUCTURE, match, 0)
    left = total(error * error)[structured] / np.maximum(coverage[structured], 0.5)
    noise = max(float(np.median(left)) if left.size else 1.0, LEAST_NOISE)
    return Cells(size, tensor, pull, match, structured, golden > STRUCTURE, found > STRUCTURE, noise)


def refine(
    reference: Grey, board: Grey, board_map: BoardMap, *, size: int, rounds: int, num: int = 8
) -> tuple[BoardMap, Cells]:
    """Improve matrix and slip offsets of a level's map by the first `num` of the 8 parameters of PRIOR_PX.

    Returns the map, and its cells as of a last step of less than ENOUGH_PX, if that came within `rounds`.
    """
    total = np.zeros(num + 2 * len(board_map.slips))
    cells = measure(reference, board, board_map, size)
    for _ in range(rounds):
        board_map, step = _step(cells, board_map, total, num)
        total += step
        if np.abs(step).max() < ENOUGH_PX:
            break
        cells = measure(reference, board, board_map, size)
    return board_map, cells


def _step(cells: Cells, board_map: BoardMap, total: Floats, num: int) -> tuple[BoardMap, Floats]:
    height, width = board_map.reference_shape
    half = np.hypot(height, width) / 2**1.5
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    centres = cells.centres()
    x, y = ((centres - middle) / half).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    across = (one, zero, -y, x, x, y, x * x, x * y)
    down = (zero, one, x, y, -y, x, x * y, y * y)
    design = np.stack((np.stack(across[:num], -1), np.stack(down[:num], -1)), 1)  # (cells, 2, num)
    weights = cells.weights() / (cells.noise * CORRELATED_PX)
    if board_map.slips:
        part = part_of(board_map, centres, cells.size)
        design = np.concatenate(
            [design, *(np.eye(2) * (part == k + 1)[:, None, None] for k in range(len(board_map.slips)))], -1
        )
        weights = weights * (part >= 0)
    tensor, pull = cells.tensor.reshape(-1, 2, 2), cells.pull.reshape(-1, 2)
    weighted = np.einsum("kij,kjp,k->kip", tensor, design, weights)
    normal = np.einsum("kip,kiq->pq", design, weighted)
    right = np.einsum("kip,ki,k->p", design, pull, weights)
    precision = np.full(design.shape[-1], SLIP_PRIOR_PX**-2)
    precision[:num] = (640 / (2 * half) / PRIOR_PX[:num]) ** 2
    right -= precision * total
    step = np.linalg.solve(normal + np.diag(precision), right)
    step = np.clip(step, -cells.size, cells.size)
    return _moved(board_map, step, num, half, middle), step


def _moved(board_map: BoardMap, step: Floats, num: int, half: float, middle: Floats) -> BoardMap:
    """The map after a step: what was taken at x is now taken at x + u(x)."""
    a = np.zeros(8)
    a[:num] = step[:num]
    linear = np.array([[a[3] + a[4], a[5] - a[2]], [a[5] + a[2], a[3] - a[4]]]) / half
    change = np.eye(3)
    change[:2, :2] += linear
    change[:2, 2] = a[:2] / half
    change[2, :2] = -a[6:8] / half
    frame = np.array([[1 / half, 0, -middle[0] / half], [0, 1 / half, -middle[1] / half], [0, 0, 1]])
    matrix = np.linalg.inv(np.linalg.inv(frame) @ change @ frame) @ board_map.matrix
    back = np.linalg.inv(matrix)
    at = project(back, middle + np.array([[0, 0], [1, 0], [0, 1]]))
    jacobian = np.stack((at[1] - at[0], at[2] - at[0]), -1)
    slips = []
    for k, slip in enumerate(board_map.slips):
        offset = np.asarray(slip.offset) - jacobian @ step[num + 2 * k : num + 2 * k + 2]
        slips.append(Slip(slip.row, (float(offset[0]), float(offset[1]))))
    return replace(board_map, matrix=matrix / matrix[2, 2], slips=tuple(slips))


def part_of(board_map: BoardMap, points: Floats, size: int) -> NDArray[np.intp]:
    """The part between slips, 0 on top, that cells of `size` px around points show; -1: several."""
    y = board_map.to_board(points)[:, 1]
    rows = np.array([slip.row for slip in board_map.slips])
    part = np.searchsorted(rows, y + 0.5, side="right")
    near = (np.abs(y[:, None] + 0.5 - rows) < size * 0.6).any(1) if len(rows) else np.zeros(len(y), bool)
    return np.where(near, -1, part)
