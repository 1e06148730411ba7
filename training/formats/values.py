"""Texts and values of label files, taken for no more than they say."""

from __future__ import annotations

import re
from typing import Any

_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"", "0", "false"})


def plain_float(text: str) -> float:
    """A number in ASCII digits, perhaps nan or inf; raises ValueError for Python's own `1_0` and the like."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r:.60} is no plain number")
    return float(text)


def plain_int(text: str) -> int:
    """A whole number of at most 18 ASCII digits; raises ValueError for anything else."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise ValueError(f"{text!r:.60} is no whole number of at most 18 digits")
    return int(text)


def read_flag(value: Any) -> bool | None:
    """What a flag says: true or false as such, as 0 or 1, or as a word; None where that cannot be told."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    word = value.strip().lower() if isinstance(value, str) else "?"
    return True if word in _TRUE else False if word in _FALSE else None


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: lone surrogates, and file names in other bytes, cannot."""
    return text.isascii() or escaped(text) == text


def escaped(text: str) -> str:
    """The text with backslash escapes for what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
