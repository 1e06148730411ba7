"""Laying out titled pictures on one dark sheet under a verdict. Knows pictures and words, not inspections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from inspect_vit.drawing import DIM_INK, INK, PAPER, Colour, Picture, draw_text, fill, text_width

MARGIN, GAP = 28, 20
TITLE_PX, CAPTION_PX, VERDICT_PX = 20, 15, 34
MAX_COLUMNS = 4
PANEL_GROUND: Colour = (28, 34, 44)


@dataclass(frozen=True)
class Panel:
    """One picture with its title, and the legend that goes under it."""

    title: str
    picture: Picture
    legend: Picture | None = None


@dataclass(frozen=True)
class CloseLook:
    """Crops of one place, side by side, all of one height, with a line of text."""

    caption: str
    crops: tuple[Picture, ...]


@dataclass(frozen=True)
class Headline:
    """The words on top: a badge, a sentence beside it and a dim line under that."""

    badge: str
    badge_colour: Colour
    sentence: str
    small_print: str


def compose_sheet(headline: Headline, panels: Sequence[Panel], looks: Sequence[CloseLook]) -> Picture:
    """Headline, panels in at most four columns, then the close looks; (H, W, 3)."""
    columns = min(len(panels), MAX_COLUMNS)
    cell = max(panel.picture.shape[1] for panel in panels)
    width = 2 * MARGIN + columns * cell + (columns - 1) * GAP
    rows = [_header(headline, width), *_panel_rows(panels, columns, cell, width)]
    if looks:
        rows.append(_look_row(looks, width))
    return np.vstack([*rows, _ground(MARGIN - GAP, width)])


def compose_panels(panels: Sequence[Panel]) -> Picture:
    """Panels alone, in at most four columns; (H, W, 3)."""
    columns = min(len(panels), MAX_COLUMNS)
    cell = max(panel.picture.shape[1] for panel in panels)
    width = 2 * MARGIN + columns * cell + (columns - 1) * GAP
    return np.vstack([_ground(GAP // 2, width), *_panel_rows(panels, columns, cell, width)])


def _panel_rows(panels: Sequence[Panel], columns: int, cell: int, width: int) -> list[Picture]:
    return [
        _panel_row(panels[start : start + columns], cell, width) for start in range(0, len(panels), columns)
    ]


def _ground(height: int, width: int) -> Picture:
    ground = np.empty((height, width, 3), np.uint8)
    ground[:] = PAPER
    return ground


def _header(headline: Headline, width: int) -> Picture:
    header = _ground(2 * MARGIN + 2 * VERDICT_PX, width)
    high = round(1.7 * VERDICT_PX)
    wide = text_width(headline.badge, VERDICT_PX, bold=True) + VERDICT_PX
    fill(header, (MARGIN, MARGIN, MARGIN + wide, MARGIN + high), headline.badge_colour)
    baseline = MARGIN + round(1.2 * VERDICT_PX)
    draw_text(header, headline.badge, (MARGIN + VERDICT_PX // 2, baseline), VERDICT_PX, bold=True, ink=PAPER)
    left = MARGIN + wide + GAP
    draw_text(header, headline.sentence, (left, MARGIN + TITLE_PX), TITLE_PX)
    draw_text(header, headline.small_print, (left, MARGIN + high - 4), CAPTION_PX, ink=DIM_INK)
    return header


def _panel_row(panels: Sequence[Panel], cell: int, width: int) -> Picture:
    title_high = 2 * TITLE_PX
    picture_high = max(panel.picture.shape[0] for panel in panels)
    legend_high = max((p.legend.shape[0] for p in panels if p.legend is not None), default=0)
    row = _ground(title_high + picture_high + legend_high + GAP, width)
    for index, panel in enumerate(panels):
        left = MARGIN + index * (cell + GAP)
        draw_text(row, panel.title, (left, round(1.3 * TITLE_PX)), TITLE_PX)
        fill(row, (left, title_high, left + cell, title_high + picture_high), PANEL_GROUND)
        high, wide = panel.picture.shape[:2]
        x, y = left + (cell - wide) // 2, title_high + (picture_high - high) // 2
        row[y : y + high, x : x + wide] = panel.picture
        if panel.legend is not None:
            high, wide = panel.legend.shape[0], min(panel.legend.shape[1], cell)
            y = title_high + picture_high
            row[y : y + high, left : left + wide] = panel.legend[:, :wide]
    return row


def _look_row(looks: Sequence[CloseLook], width: int) -> Picture:
    """As many close looks as fit into the sheet's width, first ones first."""
    high = max(crop.shape[0] for look in looks for crop in look.crops)
    row = _ground(2 * CAPTION_PX + high + GAP, width)
    left = MARGIN
    for look in looks:
        crops_wide = sum(crop.shape[1] for crop in look.crops) + 4 * (len(look.crops) - 1)
        wide = max(crops_wide, text_width(look.caption, CAPTION_PX))
        if left + wide > width - MARGIN:
            break
        draw_text(row, look.caption, (left, round(1.2 * CAPTION_PX)), CAPTION_PX, ink=INK)
        x = left
        for crop in look.crops:
            row[2 * CAPTION_PX : 2 * CAPTION_PX + crop.shape[0], x : x + crop.shape[1]] = crop
            x += crop.shape[1] + 4
        left += wide + GAP
    return row


def resize(picture: Picture, height: int, width: int) -> Picture:
    """Shrink smoothly; enlarge smoothly a little and with visible pixels a lot."""
    if (height, width) == picture.shape[:2]:
        return picture
    factor = height / picture.shape[0]
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC if factor < 3 else cv2.INTER_NEAREST
    return np.asarray(cv2.resize(picture, (width, height), interpolation=how), np.uint8)
