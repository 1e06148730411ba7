"""Edge cuts joined into closed loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from training.kicad_shapes import Points

# Drawn corners of real boards miss each other by up to some hundredths of a millimetre.
JOIN_MM = 0.05
# Tried where nothing closes within JOIN_MM.
WIDE_MM = 0.15
# A corner on a line, for splitting lines that overlap.
_ON_LINE_MM = 0.005
# Around copper where there is no outline.
MARGIN_MM = 0.5


def find_outline(
    edges: list[Points], anchors: Points, say: Callable[[str], None]
) -> tuple[list[Points], bool]:
    """The loops of a board: what lies inside an odd number of them is board.

    Args:
        edges: lines of the edge cuts, each (n, 2) in mm.
        anchors: (n, 2) points that lie on the board; loops that hold fewer than half of them are no outline.
        say: told what was guessed.

    Returns:
        The loops, and whether they are the design's: else the first is the bounding box of edges and anchors.

    Raises:
        ConfigError: there is neither an edge nor an anchor.
    """
    loops, loose = join_loops(edges)
    if loose:
        say(f"{len(loose)} chains of edge cuts do not close")
    if _holds(loops, anchors):
        return loops, True
    for gap in (JOIN_MM, WIDE_MM):
        mended, _ = join_loops(_without_ends(_split(edges), gap), join_mm=gap)
        if _holds(mended, anchors):
            say(f"edge cuts that overlap, stop short by up to {gap} mm or lead nowhere were mended")
            return mended, True
    points = np.concatenate([*edges, anchors])
    if not len(points):
        raise ConfigError("the board has no edge cuts, no pads and no tracks; nothing can be drawn")
    low, high = points.min(axis=0) - MARGIN_MM, points.max(axis=0) + MARGIN_MM
    say("no closed outline holds the copper: the bounding box of edge cuts and copper stands for it")
    box = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    return [box, *loops], False


def inside(loop: Points, points: Points) -> NDArray[np.bool_]:
    """(n,) which of the points lie inside the loop."""
    x, y = points[:, 0, None], points[:, 1, None]
    (x0, y0), (x1, y1) = loop.T, np.roll(loop, -1, axis=0).T
    crosses = (y0 <= y) != (y1 <= y)
    rise = np.where(y1 == y0, 1.0, y1 - y0)
    return np.asarray((crosses & (x < x0 + (y - y0) * (x1 - x0) / rise)).sum(axis=1) % 2 == 1)


def join_loops(lines: list[Points], *, join_mm: float = JOIN_MM) -> tuple[list[Points], list[Points]]:
    """Chain lines end to end into loops.

    Args:
        lines: each (n, 2) in mm; one that ends where it begins is a loop already.
        join_mm: ends no further apart than this are one corner.

    Returns:
        Closed loops (n >= 3, the first point not repeated) and the chains that do not close.
    """
    loops: list[Points] = []
    loose: list[Points] = []
    rest: list[Points] = []
    for line in _without_repeats(lines):
        if len(line) > 2 and _near(line[0], line[-1], 1e-6):
            loops.append(line[:-1])
        elif len(line) > 1 and not _near(line[0], line[-1], 1e-6):
            rest.append(line)
    while rest:
        chain, grown = rest.pop(), True
        while grown and not (len(chain) > 2 and _near(chain[0], chain[-1], join_mm)):
            chain, grown = _grow(chain, rest, join_mm)
        if len(chain) > 3 and _near(chain[0], chain[-1], join_mm):
            loops.append(chain[:-1])
        else:
            loose.append(chain)
    return loops, loose


def _grow(chain: Points, rest: list[Points], join_mm: float) -> tuple[Points, bool]:
    """Add to the chain's end the line that begins or ends nearest to it, and take that line out of `rest`."""
    for _ in range(2):
        if rest:
            ends = np.array([[line[0], line[-1]] for line in rest])
            gaps = np.linalg.norm(ends - chain[-1], axis=2)
            index, end = np.unravel_index(int(gaps.argmin()), gaps.shape)
            if gaps[index, end] <= join_mm:
                line = rest.pop(int(index))
                return np.vstack([chain, (line if end == 0 else line[::-1])[1:]]), True
        # Nothing follows: try the other end.
        chain = chain[::-1]
    return chain, False


def _without_repeats(lines: list[Points]) -> list[Points]:
    """Lines drawn twice, in either direction, once."""
    kept: dict[tuple[tuple[float, ...], ...], Points] = {}
    for line in lines:
        forth = tuple(tuple(point) for point in np.round(line, 3).tolist())
        if forth not in kept and forth[::-1] not in kept:
            kept[forth] = line
    return list(kept.values())


def _holds(loops: list[Points], anchors: Points) -> bool:
    """Whether at least half of the anchors lie inside an odd number of loops."""
    if not loops or not len(anchors):
        return bool(loops)
    depth = np.sum([inside(loop, anchors) for loop in loops], axis=0)
    return bool((depth % 2).mean() >= 0.5)


def _split(lines: list[Points]) -> list[Points]:
    """Straight lines cut where another line's end lies on them, so that overlaps become repeats."""
    ends = np.array([end for line in lines for end in (line[0], line[-1])]).reshape(-1, 2)
    found: list[Points] = []
    for line in lines:
        step = line[-1] - line[0]
        length = float(np.hypot(*step))
        if len(line) != 2 or length == 0.0:
            found.append(line)
            continue
        along, aside = (ends - line[0]) @ step / length, (ends - line[0]) @ [-step[1], step[0]] / length
        on = (np.abs(aside) < _ON_LINE_MM) & (along > _ON_LINE_MM) & (along < length - _ON_LINE_MM)
        cuts = [0.0, *sorted(set(np.round(along[on], 3).tolist())), length]
        corners = line[0] + np.outer(cuts, step / length)
        found.extend(corners[i : i + 2] for i in range(len(cuts) - 1))
    return _without_repeats(found)


def _without_ends(lines: list[Points], join_mm: float) -> list[Points]:
    """Lines left when those that lead nowhere are taken away, again and again."""
    while lines:
        ends = np.array([[line[0], line[-1]] for line in lines])
        gaps = np.linalg.norm(ends.reshape(-1, 1, 2) - ends.reshape(1, -1, 2), axis=2)
        np.fill_diagonal(gaps, np.inf)
        joined = (gaps.min(axis=1) <= join_mm).reshape(-1, 2).all(axis=1)
        if joined.all():
            break
        lines = [line for line, keep in zip(lines, joined, strict=True) if keep]
    return lines


def _near(a: Points, b: Points, distance: float) -> bool:
    return float(np.hypot(*(a - b))) <= distance
