"""YOLO detect and segment: data.yaml, and beside each folder `images` a folder `labels` of text files.

A line is `class cx cy w h`, a box, or `class x1 y1 x2 y2 x3 y3 ...`, an outline of three points or more;
both may stand in one file. Numbers are shares of the width and height of the upright picture between its
outer edges: times the width, 0 is the left edge of the first pixel and the width the right edge of the
last.

An empty label file is a good board. A picture without a label file is one too by YOLO's rule, and is named
as fault "no-label-file". Labels lie where the last `images` of the path reads `labels`, or beside the
picture.

What YOLO cannot hold: a box that differs from its outline; ignored objects. Its outlines are one ring: holes
and disjoint parts are joined to it by cuts of no width, which this reader takes out, and pixels become the
polygon along their edges. Numbers are written with 15 digits, so that boxes of float32 come back as they
were. References and groups are written to pairs.csv.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from inspect_vit.errors import ConfigError
from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.cuts import one_ring, split_cuts
from training.formats.dataset import DataSet, Fault
from training.formats.export import Export, shape_of
from training.formats.outlines import pixel_outline
from training.formats.pair_table import write_pairs
from training.formats.picture_labels import PictureLabels, read_text
from training.formats.pictures import list_pictures
from training.formats.reading import Reading
from training.formats.rings import clip_ring, open_ring
from training.formats.values import plain_float
from training.formats.yolo_layout import Listed, find_name_list, find_yaml, read_layout

_FURTHEST = 2.0
"""Shares beyond this are no rounding but pixels."""


def looks_like_yolo(root: Path) -> bool:
    """Whether there is a data.yaml with class names, or text files with a list of names or in `labels`."""
    if find_yaml(root) is not None:
        return True
    names = find_name_list(root) if root.is_dir() else None
    place = root / "labels" if (root / "images").is_dir() else root if names else None
    return place is not None and any(path != names for path in place.rglob("*.txt"))


def read_yolo(root: Path) -> DataSet:
    """Read the set of a data.yaml, given itself or by its folder.

    Raises:
        ConfigError: no such folder, no picture in it, or a data.yaml that cannot be read.
    """
    root = root.resolve()
    reading = Reading()
    layout = read_layout(root, reading)
    if not layout.pictures and not reading.faults:
        raise ConfigError(f"{root}: no pictures; wanted data.yaml, or images/ and labels/")
    classes = _Classes(layout.names)
    files: dict[Path, Path] = {}
    clear = _without_shared_labels(layout.pictures, files, reading)
    samples = [s for listed in clear if (s := _read_picture(listed, classes, reading, files)) is not None]
    _name_strays(files, reading)
    return DataSet(tuple(samples), classes.all_names(), tuple(reading.faults), "yolo", layout.folder)


class _Classes:
    """Class ids -> names; where the set has none, ids are named as they come."""

    def __init__(self, names: dict[int, str] | None) -> None:
        self._fixed = names is not None
        self._names = dict(names or {})

    def name_of(self, number: int) -> str | None:
        if not self._fixed and number >= 0:
            self._names.setdefault(number, f"class_{number}")
        return self._names.get(number)

    def all_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, name in sorted(self._names.items())))

    def __str__(self) -> str:
        return f"0 to {max(self._names)}" if self._names else "none"


def _label_path(picture: Path) -> Path | None:
    """The label file of a picture: the last folder `images` reads `labels`, or the same folder."""
    parts = list(picture.parent.parts)
    at = next((i for i in range(len(parts) - 1, -1, -1) if parts[i].lower() == "images"), None)
    swapped = (
        [] if at is None else [Path(*parts[:at], word, *parts[at + 1 :]) for word in ("labels", "Labels")]
    )
    places = (folder / f"{picture.stem}.txt" for folder in (*swapped, picture.parent))
    return next((place for place in places if place.is_file()), None)


def _without_shared_labels(
    pictures: Sequence[Listed], files: dict[Path, Path], reading: Reading
) -> list[Listed]:
    """The pictures whose label file is theirs alone: of a.jpg and a.png, nobody knows whose a.txt is."""
    owners: dict[Path | None, dict[Path, Listed]] = {}
    paths = {listed.path: _label_path(listed.path) for listed in pictures}
    for listed in pictures:
        owners.setdefault(paths[listed.path], {}).setdefault(listed.path.resolve(), listed)
    shared = {path for path, listed in owners.items() if path is not None and len(listed) > 1}
    for path in sorted(path for path in shared if path is not None):
        first, *others = owners[path].values()
        files[path] = first.path
        names = " and ".join(str(listed.path) for listed in (first, *others))
        message = f"{names} share these labels; all are left out, give each a name of its own"
        reading.fault("shared-labels", str(path), message, first.path)
    return [listed for listed in pictures if paths[listed.path] not in shared]


def _read_picture(
    listed: Listed, classes: _Classes, reading: Reading, files: dict[Path, Path]
) -> Sample | None:
    """files: label file -> picture, to be filled."""
    image = listed.path.resolve()
    size = reading.size_of(image, listed.where)
    if size is None:
        return None
    labels = PictureLabels(image, size, reading)
    path = _label_path(listed.path)
    if path is None:
        labels.fault("no-label-file", listed.where, f"{listed.path} has no label file; read as a good board")
        return labels.sample(origin=listed.where, split=listed.split)
    files[path] = listed.path
    try:
        lines = read_text(path).splitlines()
    except ConfigError as error:
        labels.fault("corrupt-labels", str(path), f"{error}; its picture is left out")
        return None
    for number, line in enumerate(lines, 1):
        if fields := line.split():
            _read_line(fields, f"{path}:{number}", classes, labels)
    return labels.sample(origin=str(path), split=listed.split)


def _read_line(fields: list[str], where: str, classes: _Classes, labels: PictureLabels) -> None:
    wanted = "wanted 'class cx cy w h' or 'class x1 y1 x2 y2 x3 y3 ...'; left out"
    try:
        class_id, *values = map(plain_float, fields)
    except ValueError:
        labels.fault("bad-line", where, f"{' '.join(fields)!r:.80} holds what is no number; {wanted}")
        return
    if not all(map(math.isfinite, (class_id, *values))):
        labels.fault("not-finite", where, f"{' '.join(fields)!r:.80}; wanted finite numbers; left out")
        return
    if len(values) < 4 or len(values) % 2:
        score = ", perhaps a prediction with its score" if len(values) == 5 else ""
        labels.fault("bad-line", where, f"{len(fields)} numbers{score}; {wanted}")
        return
    name = classes.name_of(int(class_id)) if class_id.is_integer() else None
    if name is None:
        labels.fault("unknown-class", where, f"class {fields[0]} is not named; known are {classes}; left out")
        return
    if max(map(abs, values)) > _FURTHEST:
        message = f"{' '.join(fields)!r:.80} is not in shares of the picture, 0 to 1; left out"
        labels.fault("not-normalised", where, message)
        return
    width, height = labels.size
    if len(values) == 4:
        x, y, w, h = (value * side for value, side in zip(values, (width, height) * 2, strict=True))
        labels.add(name, where, box=(x - w / 2, y - h / 2, x + w / 2, y + h / 2))
    else:
        ring = open_ring(np.array(values, np.float64).reshape(-1, 2) * (width, height))
        labels.add(name, where, shape=Shape(polygons=split_cuts(ring)))


def _name_strays(files: dict[Path, Path], reading: Reading) -> None:
    """Say which label files, in the folders that were read, have no picture."""
    for folder in sorted({path.parent for path in files}):
        pictures = {picture.parent for path, picture in files.items() if path.parent == folder}
        stems = {path.stem for place in pictures for path in list_pictures(place)}
        for path in sorted(folder.glob("*.txt")):
            if path.stem not in stems and path not in files and (folder not in pictures or _is_label(path)):
                message = "there is no picture for these labels; left out"
                if path.name != "classes.txt":
                    reading.fault("missing-image", str(path), message, None)


def _is_label(path: Path) -> bool:
    """Whether a text file beside pictures starts as a label file; others are notes and lists."""
    with path.open("rb") as file:
        fields = file.readline(4096).split()
    return len(fields) >= 5 and all(
        field.replace(b".", b"").replace(b"-", b"").isdigit() for field in fields[:5]
    )


def write_yolo(
    data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
) -> list[Path]:
    """Write data.yaml, images/SPLIT and labels/SPLIT into an empty folder; return the files.

    Pictures without a split go to `train`. A good board gets an empty label file. References and groups go to
    pairs.csv, as other programs have no use for them.

    Args:
        copy_pictures: else images/SPLIT holds links to the pictures.
        lost: gets a fault for whatever YOLO cannot hold.

    Raises:
        ConfigError: `out` is not empty, or cannot be written.
    """
    export = Export(data, out, lost)
    samples = export.once_each(by_split=True)
    if unsplit := [sample for sample in samples if not sample.split]:
        export.lose("no-split", unsplit[0], f"{len(unsplit)} pictures are of no split; written to train")
    if len({shape is None for s in samples for shape in s.masks or (None,) * len(s.boxes)}) == 2:
        message = "boxes and outlines are mixed; other programs may take all for boxes, or refuse them"
        export.lose("mixed-labels", samples[0], message)
    numbers = {name: number for number, name in enumerate(export.class_names)}
    placed = []
    for sample in samples:
        split, name = sample.split or "train", export.names[sample.image]
        target = export.out / "images" / split / name
        placed.append((sample, export.place(sample.image, target, copy=copy_pictures, link=True)))
        lines = "".join(f"{line}\n" for line in _lines(sample, numbers, export))
        export.write_text((export.out / "labels" / split / name).with_suffix(".txt"), lines)
    splits = {
        name: f"images/{name}"
        for name in ("train", "val", "test")
        if any((s.split or "train") == name for s in samples)
    }
    tree = {**splits, "nc": len(numbers), "names": {number: name for name, number in numbers.items()}}
    export.write_text(export.out / "data.yaml", yaml.safe_dump(tree, allow_unicode=True, sort_keys=False))
    write_pairs(export, placed, copy=copy_pictures)
    return export.written


def _lines(sample: Sample, numbers: dict[str, int], export: Export) -> list[str]:
    """One line per defect."""
    size = picture_size(sample.image)
    lines = []
    ignored = sample.is_ignored.tolist()
    for index, (box, label) in enumerate(zip(sample.boxes.tolist(), sample.labels, strict=True)):
        if ignored[index]:
            export.lose("no-ignored", sample, f"an ignored {label!r} cannot be marked as such; left out")
            continue
        values = _outline(sample, index, size, export)
        if values is None:
            left, top, right, bottom = (value / side for value, side in zip(box, size * 2, strict=True))
            values = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
        lines.append(" ".join([str(numbers[label]), *(f"{value:.15g}" for value in values)]))
    return lines


def _outline(sample: Sample, index: int, size: tuple[int, int], export: Export) -> list[float] | None:
    """Shares x, y, x, y, ... of an outline as one ring inside the picture; None where there is a box only."""
    shape = shape_of(sample, index)
    if shape is None:
        return None
    export.check_box(sample, index, shape, size)
    if shape.runs is not None:
        left, top, window = shape.window(size[1], size[0])
        polygons = pixel_outline(window, (left, top))
    else:
        polygons = tuple(
            clipped for polygon in shape.polygons if (clipped := _clip(polygon, size)) is not None
        )
    if not polygons:
        export.lose(
            "no-outline",
            sample,
            f"the outline of a {sample.labels[index]!r} lies outside; its box is written",
        )
        return None
    ring, exact = one_ring(polygons, size)
    if not exact:
        message = "its polygons overlap; written along the edges of the pixels they cover"
        export.lose("outline-as-pixels", sample, message)
    elif len(ring) > len(polygons[0].exterior):
        export.lose(
            "outline-cut", sample, "holes or parts are joined by cuts of no width, which other programs keep"
        )
    return [float(value) for value in (ring / size).ravel()]


def _clip(polygon: Polygon, size: tuple[int, int]) -> Polygon | None:
    exterior = clip_ring(polygon.exterior, *size)
    if exterior is None:
        return None
    return Polygon(
        exterior, tuple(hole for ring in polygon.holes if (hole := clip_ring(ring, *size)) is not None)
    )
