"""The text of a `.kicad_pcb` file as a tree of lists, and checked access to its values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError

Node: TypeAlias = "list[str | Node]"
"""One `(name value ...)`: the name first, then values (str) and child nodes (list)."""

_TOKEN = re.compile(r'[()]|"(?:[^"\\]|\\.)*"|[^\s()"]+|"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def read_tree(path: Path) -> Node:
    """The root node of the file, `["kicad_pcb", ...]`.

    Raises:
        ConfigError: no such file, not a KiCad board, or brackets or quotes that do not close.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; give a .kicad_pcb file") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Boards of 2013 carry Latin-1 titles; every byte is a Latin-1 letter, so nothing is lost but looks.
        text = data.decode("latin-1")
    root = parse_tree(text, str(path))
    if not root or root[0] != "kicad_pcb":
        raise ConfigError(f"{path} starts with {root[:1]!r}, not with kicad_pcb; give a KiCad board file")
    return root


def parse_tree(text: str, where: str = "text") -> Node:
    """The one node that `text` holds; `where` names it in errors. Depth is limited by memory alone."""
    root: Node = []
    stack: list[Node] = []
    node = root
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append(node)
            child: Node = []
            node.append(child)
            node = child
        elif token == ")":
            if not stack:
                raise ConfigError(f"{where}: a bracket closes that was never opened; the file is damaged")
            node = stack.pop()
        elif token[0] != '"':
            node.append(token)
        elif len(token) == 1:
            raise ConfigError(f"{where}: a quote is not closed; the file is damaged or cut short")
        elif "\\" in token:
            node.append(_ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), token[1:-1]))
        else:
            node.append(token[1:-1])
    if stack:
        raise ConfigError(f"{where}: {len(stack)} brackets are not closed; the file is cut short")
    if len(root) != 1 or not isinstance(root[0], list):
        raise ConfigError(f"{where}: {len(root)} entries at the top, expected one node in brackets")
    return root[0]


def children(node: Node, *names: str) -> Iterator[Node]:
    """The child nodes with one of these names, in file order."""
    for entry in node:
        if isinstance(entry, list) and entry and entry[0] in names:
            yield entry


def child(node: Node, name: str) -> Node | None:
    """The first child node of this name."""
    return next(children(node, name), None)


def words(node: Node) -> list[str]:
    """The plain values of a node, its name left out."""
    return [entry for entry in node[1:] if isinstance(entry, str)]


def word(node: Node, name: str, default: str = "") -> str:
    """The first plain value of the child `name`."""
    found = child(node, name)
    values = words(found) if found else []
    return values[0] if values else default


def flag(node: Node, name: str) -> bool:
    """Whether `name` is set: as a bare word after the first value, or as `(name)` or `(name yes)`."""
    found = child(node, name)
    if found is not None:
        return word(node, name, "yes") not in ("no", "false")
    return name in node[2:]


def numbers(node: Node, count: int) -> list[float]:
    """The first `count` values of a node as numbers; ConfigError when they are missing or not finite."""
    found: list[float] = []
    for value in node[1 : count + 1]:
        try:
            found.append(float(value) if isinstance(value, str) else np.nan)
        except ValueError:
            found.append(np.nan)
    if len(found) < count or not np.isfinite(found).all():
        raise ConfigError(f"board entry {node!r:.120} needs {count} finite numbers; the file is damaged")
    return found


def number(node: Node, name: str, default: float = 0.0) -> float:
    """The number of the child `name`, e.g. of `(width 0.25)`."""
    found = child(node, name)
    return default if found is None else numbers(found, 1)[0]


def point(node: Node, name: str) -> NDArray[np.float64]:
    """(x, y) of the child `name`; ConfigError when there is none."""
    found = child(node, name)
    if found is None:
        raise ConfigError(f"board entry {node!r:.120} has no ({name} x y); the file is damaged")
    return np.array(numbers(found, 2))
