"""The shapes of a LabelMe file -> defects, and the picture embedded in it -> a file."""

from __future__ import annotations

import base64
import binascii
import io
import math
import reprlib
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy
from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.cuts import split_cuts
from training.formats.picture_labels import IGNORE_WORDS, PictureLabels, Tally
from training.formats.reading import Reading
from training.formats.rings import ellipse_ring, open_ring, turned_box
from training.formats.values import is_unicode

_POINTS = {"rectangle": 2, "circle": 2, "mask": 2, "oriented_rectangle": 4, "rotation": 4}
"""How many points a shape has; a polygon has three or more."""
_READ = {"label", "points", "group_id", "shape_type", "flags", "mask", "difficult"}
_SUFFIXES = {
    "JPEG": (".jpg", ".jpeg", ".jpe"),
    "PNG": (".png",),
    "BMP": (".bmp",),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
}


@dataclass(frozen=True)
class _Part:
    """One shape of the file: a box, polygons or pixels."""

    label: str
    where: str
    ignored: bool
    box: BoxXyxy | None = None
    shape: Shape | None = None

    def outline(self) -> Shape:
        if self.box is None:
            assert self.shape is not None
            return self.shape
        return Shape(polygons=(Polygon(turned_box(self.box, 0)),))


def read_shapes(entries: list[Any], path: Path, labels: PictureLabels, tally: Tally) -> None:
    """Add the defects that the shapes make; those of one label and group are one, placed with its first."""
    groups: dict[object, list[_Part]] = {}
    for index, entry in enumerate(entries):
        where = f"{path}:shapes[{index}]"
        if not isinstance(entry, dict):
            labels.fault("not-an-object", where, f"{reprlib.repr(entry)}, wanted an object; left out")
            continue
        for key in (key for key, value in entry.items() if key not in _READ and value):
            tally.note("unread-key", f"{key!r} of a shape is not read", where)
        try:
            part = _read_part(entry, where, labels, tally)
        except ConfigError as error:
            labels.fault("bad-outline", where, f"{error}; left out")
            continue
        if part is not None:
            group = entry.get("group_id")
            joins = isinstance(group, int | float | str)
            groups.setdefault((part.label, str(group)) if joins else index, []).append(part)
    for parts in groups.values():
        first, ignored = parts[0], any(part.ignored for part in parts)
        if len(parts) == 1 and first.box is not None:
            labels.add(first.label, first.where, box=first.box, ignored=ignored)
        else:
            labels.add_parts(first.label, first.where, [part.outline() for part in parts], ignored=ignored)


def _read_part(entry: dict[str, Any], where: str, labels: PictureLabels, tally: Tally) -> _Part | None:
    """Raises ConfigError where the points do not make the shape that its type names."""
    label, kind = entry.get("label"), entry.get("shape_type") or "polygon"
    if not isinstance(kind, str):
        raise ConfigError(f"shape_type {reprlib.repr(kind)}; wanted a name")
    label = label.strip() if isinstance(label, str) else ""
    if not label:
        labels.fault(
            "unknown-class", where, f"label {reprlib.repr(entry.get('label'))}, wanted a name; left out"
        )
        return None
    if not is_unicode(label):
        labels.fault("not-unicode", where, f"label {label!r} is no valid Unicode; left out")
        return None
    if kind not in _POINTS and kind != "polygon":
        labels.fault("not-an-area", where, f"a {kind!r} named {label!r} has no area; left out")
        return None
    points = _points(entry.get("points"), kind)
    flags = entry.get("flags")
    flags = {str(name).lower(): value for name, value in flags.items()} if isinstance(flags, dict) else {}
    for name in sorted(name for name, value in flags.items() if value and name not in IGNORE_WORDS):
        tally.note("unread-key", f"the flag {name!r} of a shape is not read", where)
    marks = [(name, value) for name, value in flags.items() if name in IGNORE_WORDS]
    marks.append(("difficult", entry.get("difficult")))
    ignored = any([labels.flag(value, name, where) for name, value in marks])
    if kind == "rectangle":
        (left, top), (right, bottom) = points.min(0).tolist(), points.max(0).tolist()
        return _Part(label, where, ignored, box=(left, top, right, bottom))
    if kind == "mask":
        shape = _read_mask(entry.get("mask"), points, labels.size)
    elif kind == "circle":
        (x, y), radius = points[0].tolist(), math.dist(*points.tolist())
        shape = Shape(polygons=(Polygon(ellipse_ring((x, y), (radius, radius))),))
    else:
        shape = Shape(polygons=split_cuts(open_ring(points)))
    return _Part(label, where, ignored, shape=shape)


def _points(points: Any, kind: str) -> Ring:
    wanted = _POINTS.get(kind)
    try:
        ring = np.array(points, np.float64)
        good = ring.ndim == 2 and ring.shape[1] == 2 and bool(np.isfinite(ring).all())
    except (TypeError, ValueError, OverflowError, RecursionError):
        good = False
    if not good or not (len(ring) == wanted if wanted else len(ring) >= 3):
        count = wanted or "three or more"
        raise ConfigError(f"points {reprlib.repr(points)} of a {kind}; wanted {count} finite points [x, y]")
    return ring


def _read_mask(packed: Any, points: Ring, size: tuple[int, int]) -> Shape:
    """The pixels of an embedded PNG that begins at the first point; its last pixel is the second point."""
    try:
        with Image.open(io.BytesIO(_decode(packed)), formats=("PNG",)) as image:
            if image.width > size[0] or image.height > size[1]:
                raise ConfigError(f"a mask of {image.size} px in a picture of {size} (width, height)")
            pixels = np.asarray(image)
    except ConfigError:
        raise
    except Exception as error:  # Pillow raises whatever a damaged file provokes
        raise ConfigError(f"the embedded mask cannot be read ({error})") from error
    if pixels.ndim != 2:
        raise ConfigError(f"the embedded mask has {pixels.shape[2]} channels; wanted one")
    left, top = np.rint(points[0]).astype(int).tolist()
    return Shape.from_mask(pixels != 0, at=(left, top), size=size[::-1])


def unpack_picture(packed: str, name: str, path: Path, reading: Reading) -> Path | None:
    """Write the embedded picture beside its JSON file, under the name given there, never over another."""
    try:
        data = _decode(packed)
        with Image.open(io.BytesIO(data), formats=tuple(_SUFFIXES)) as image:
            suffixes = _SUFFIXES[str(image.format)]
    except Exception as error:  # Pillow raises whatever a damaged file provokes
        message = f"there is no picture {name!r}, and the embedded one cannot be read ({error}); left out"
        reading.fault("missing-image", str(path), message)
        return None
    own = PureWindowsPath(name)
    suffix = own.suffix if own.suffix.lower() in suffixes else suffixes[0]
    target = path.with_name((own.stem or path.stem) + suffix)
    try:
        with target.open("xb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        message = f"there is no picture {name!r}; the embedded one cannot be written ({error}); left out"
        reading.fault("missing-image", str(path), message)
        return None
    reading.fault("embedded-picture", str(path), f"there is no picture {name!r}; wrote {target}", target)
    return target.resolve()


def _decode(packed: Any) -> bytes:
    if not isinstance(packed, str):
        raise ConfigError(f"embedded data is {reprlib.repr(packed)}; wanted base64 text")
    try:
        return base64.b64decode(packed.partition(",")[2] if packed.startswith("data:") else packed)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"embedded data is not base64: {error}") from error
