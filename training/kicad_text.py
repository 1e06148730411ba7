"""Board text as pen strokes: a plain stroke font in the proportions of board text, printable ASCII.

Letters are drawn on a grid 4 wide; the baseline is at 2, small letters reach 6, capitals 8. A glyph is a list
of lines, a line the digits of its points, x then y. The size of a text is the height of its capitals.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from training.kicad_shapes import Piece, Points, placed

_BASE, _CAPITAL = 2, 6
_GAP, _SPACE = 2, 4
_LINE_PITCH = 1.62
# Bars over a name: ~RST~ until KiCad 5, ~{RST} since. The letters are drawn, the bar is not.
_BAR = re.compile(r"~\{([^}]*)\}|~(?=\S)")

_GLYPHS = {
    "!": "0804 02", '"': "0806 2826", "#": "1218 3238 0444 0646",
    "$": "473818070615354443321203 2921", "%": "0139 0818170708 3343423233", "&": "42071828270403122244",
    "'": "0806", "(": "19070311", ")": "09171301", "*": "2723 0446 0644", "+": "2723 0545", ",": "0301",
    "-": "0535", ".": "02", "/": "0139", "0": "120307183847433212", "1": "071812 0222",
    "2": "07183847460242", "3": "084825354443321203", "4": "32380444", "5": "480805354443321203",
    "6": "38180703123243443505", "7": "084812", "8": "15060718384746351504031232434435",
    "9": "12324347381807061545", ":": "05 02", ";": "05 0301", "<": "370533", "=": "0646 0444",
    ">": "073503", "?": "07183847462524 22", "@": "433212030718384744242646", "A": "022842 1535",
    "B": "02083847463505 3544433202", "C": "4738180703123243", "D": "02082846442202", "E": "48080242 0535",
    "F": "480802 0535", "G": "47381807031232434525", "H": "0802 4842 0545", "I": "0802", "J": "3833221203",
    "K": "0802 4804 1542", "L": "080242", "M": "0208254842", "N": "02084248", "O": "120307183847433212",
    "P": "02083847463505", "Q": "120307183847433212 2442", "R": "02083847463505 2542",
    "S": "473818070615354443321203", "T": "0848 2822", "U": "080312324348", "V": "082248",
    "W": "0812253248", "X": "0842 0248", "Y": "082548 2522", "Z": "08480242", "[": "19090111",
    "\\": "0931", "]": "09191101", "^": "062846", "_": "0141", "`": "0817", "a": "4642 4536160503123243",
    "b": "0802 0516364543321203", "c": "4536160503123243", "d": "4842 4536160503123243",
    "e": "04444536160503123243", "f": "38281712 0636", "g": "4641301001 4536160503123243",
    "h": "0802 0516364542", "i": "0602 08", "j": "161100 18", "k": "0802 3603 1432", "l": "080312",
    "m": "0602 05162522 25364542", "n": "0602 0516364542", "o": "120305163645433212",
    "p": "0600 0516364543321203", "q": "4640 4536160503123243", "r": "0602 051636",
    "s": "45361605143443321203", "t": "18132232 0636", "u": "0603123243 4642", "v": "062246",
    "w": "0612243246", "x": "0642 0246", "y": "0622 462210", "z": "06460242", "{": "29181605141221",
    "|": "0901", "}": "09181625141201", "~": "04153445",
}  # fmt: skip
# What stands for a letter that the font lacks: an empty box.
_UNKNOWN = "0242480802"


def text_pieces(
    text: str,
    at: Points,
    degrees: float,
    *,
    size: tuple[float, float],
    pen: float,
    justify: frozenset[str] = frozenset(),
) -> tuple[Piece, ...]:
    """The strokes of `text` about the anchor `at`.

    Args:
        size: (width, height) of a capital's cell in mm.
        pen: stroke width in mm.
        justify: of "left", "right", "top", "bottom", "mirror"; centred where none is given.
    """
    lines = _BAR.sub(lambda match: match[1] or "", text).split("\n")
    unit = np.array([size[0], -size[1]]) / _CAPITAL
    below = {"top": 0.0, "bottom": 1.0}.get(next(iter(justify & {"top", "bottom"}), ""), 0.5)
    pieces: list[Piece] = []
    for i, line in enumerate(lines):
        strokes, length = _line(line)
        left = {"left": 0.0, "right": 1.0}.get(next(iter(justify & {"left", "right"}), ""), 0.5) * length
        drop = _CAPITAL * (1 - below) + _LINE_PITCH * _CAPITAL * (i - (len(lines) - 1) * below)
        for stroke in strokes:
            points = (stroke - [left, _BASE + drop]) * unit
            pieces.append(Piece(points * [-1, 1] if "mirror" in justify else points, pen))
    return placed(pieces, at, degrees)


def expanded(text: str, reference: str, value: str) -> str:
    """The text of a part with its reference and value put where the text names them."""
    for mark, put in (("%R", reference), ("${REFERENCE}", reference), ("%V", value), ("${VALUE}", value)):
        text = text.replace(mark, put)
    return text


def unknown_letters(text: str) -> set[str]:
    """Letters that the font lacks; each is drawn as an empty box."""
    return {letter for letter in text if letter not in _GLYPHS and not letter.isspace()}


def _line(line: str) -> tuple[list[Points], float]:
    """The strokes of one line in grid units from its left end, and its length."""
    strokes: list[Points] = []
    x = 0.0
    for letter in line:
        if letter.isspace():
            x += _SPACE
            continue
        glyph, width = _glyph(letter)
        strokes.extend(stroke + np.array([x, 0.0]) for stroke in glyph)
        x += width + _GAP
    return strokes, max(0.0, x - _GAP)


@cache
def _glyph(letter: str) -> tuple[tuple[Points, ...], float]:
    lines = _GLYPHS.get(letter, _UNKNOWN).split()
    strokes = tuple(np.array([int(digit) for digit in line], np.float64).reshape(-1, 2) for line in lines)
    return strokes, float(max(stroke[:, 0].max() for stroke in strokes))
