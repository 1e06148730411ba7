"""XML label files as a tree that knows its lines, from files that nobody vouches for.

No entity is defined or fetched: a file with a DOCTYPE is refused, and with it the bombs of nested entities.
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from inspect_vit.errors import ConfigError
from training.formats.values import plain_float

_MAX_DEPTH = 100
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_NO_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff\\ud800-\\udfff]")


@dataclass
class Node:
    """One element."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Node] = field(default_factory=list)
    text: str = ""
    """Its own text, without that of its children, stripped."""

    def all(self, *tags: str) -> list[Node]:
        return [child for child in self.children if child.tag in tags]

    def first(self, *path: str) -> Node | None:
        """The first child of that tag, its first child of the next tag, and so on."""
        node: Node | None = self
        for tag in path:
            node = next((child for child in node.children if child.tag == tag), None) if node else None
        return node

    def text_of(self, *path: str) -> str:
        node = self.first(*path)
        return node.text if node else ""


def read_xml(path: Path) -> Node:
    """The root element of a file in any encoding that it names, else UTF-8.

    Raises:
        ConfigError: it cannot be read, is not well-formed, or has a DOCTYPE; names file and line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None:
        declared = _DECLARED.match(data[:200])
        encoding = declared[1].decode("ascii") if declared else "utf-8"
    try:
        text = data.decode(encoding)
    except (LookupError, ValueError) as error:
        raise ConfigError(f"{path} is not text in {encoding}: {error}") from error
    return _parse(text.encode("utf-8", "replace"), path)


def _parse(data: bytes, path: Path) -> Node:
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    root = Node("", {}, 0)
    stack = [root]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > _MAX_DEPTH:
            raise ConfigError(
                f"{path}:{parser.CurrentLineNumber}: elements are nested {len(stack)} deep, over {_MAX_DEPTH}"
            )
        node = Node(tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(node)
        stack.append(node)

    def end(tag: str) -> None:
        node = stack.pop()
        node.text = node.text.strip()

    def characters(text: str) -> None:
        stack[-1].text += text

    def refuse(*_: object) -> None:
        raise ConfigError(
            f"{path}:{parser.CurrentLineNumber}: the file has a DOCTYPE, which label files do not need and "
            "which may hide a bomb; take it out"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        message = f"{path}:{error.lineno} is not XML: {expat.ErrorString(error.code)}; export it again"
        raise ConfigError(message) from error
    return root.children[0]


def head_of(path: Path) -> str:
    """Tag of the root element as the first bytes show it, or "": cheap, for telling formats apart."""
    with path.open("rb") as file:
        head = file.read(4096).replace(b"\0", b"")  # UTF-16 too
    found = re.search(rb"<([A-Za-z_][\w.-]*)", re.sub(rb"<[?!].*?>", b"", head, flags=re.DOTALL))
    return found[1].decode("ascii") if found else ""


def number_of(text: str | None) -> float:
    """A finite number; raises ValueError for anything else."""
    value = plain_float(text or "")
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


def add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    """A new last child."""
    child = ElementTree.SubElement(parent, tag, attributes)
    child.text = text or None
    return child


def xml_text(root: ElementTree.Element) -> str:
    """The file's text, indented.

    Raises:
        ConfigError: a name with a control character, which XML cannot hold.
    """
    for element in root.iter():
        for text in (element.text or "", *element.attrib.values()):
            if _NO_XML.search(text):
                raise ConfigError(f"XML cannot hold {text!r}; rename it")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def decimal(value: float) -> str:
    """Shortest text that reads back as the same number; whole numbers without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))
