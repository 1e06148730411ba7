"""A set as Pascal VOC; `voc` says how it is laid out and what it cannot hold."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from training.formats.dataset import DataSet, Fault
from training.formats.export import Export, relative_name, shape_of
from training.formats.pair_table import write_pairs
from training.formats.voc_masks import draw_numbered, write_numbered
from training.formats.xml_tree import add, decimal, xml_text

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def write_voc(
    data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
) -> list[Path]:
    """Write Annotations, ImageSets/Main, SegmentationObject, labelmap.txt and JPEGImages; return the files.

    References and groups go to pairs.csv.

    Args:
        copy_pictures: else the XML files name the pictures where they are.
        lost: gets a fault for whatever VOC cannot hold.

    Raises:
        ConfigError: `out` is not empty or cannot be written, or a class name holds a control character.
    """
    export = Export(data, out, lost)
    samples = export.once_each()
    lists: dict[str, list[str]] = {}
    placed = []
    for sample in samples:
        name = export.names[sample.image]
        path = export.out / "Annotations" / f"{Path(name).stem}.xml"
        picture = export.place(sample.image, export.out / "JPEGImages" / name, copy=copy_pictures)
        placed.append((sample, picture))
        named = name if copy_pictures else relative_name(picture, path.parent)
        size = picture_size(sample.image)
        has_outlines = _write_outlines(sample, Path(name).stem, size, export)
        export.write_text(path, xml_text(_annotation(sample, named, size, has_outlines)))
        lists.setdefault(sample.split, []).append(path.stem)
    for split in filter(None, lists):
        text = "".join(f"{stem}\n" for stem in lists[split])
        export.write_text(export.out / "ImageSets" / "Main" / f"{split}.txt", text)
    listed = "".join(f"{name}:::\n" for name in export.class_names)
    export.write_text(export.out / "labelmap.txt", f"# label:color_rgb:parts:actions\n{listed}")
    write_pairs(export, placed, copy=copy_pictures)
    return export.written


def _write_outlines(sample: Sample, stem: str, size: tuple[int, int], export: Export) -> bool:
    shapes = [shape_of(sample, index) for index in range(len(sample.boxes))]
    if all(shape is None for shape in shapes):
        return False
    numbers, undrawn, covered = draw_numbered(shapes, size)
    for index in undrawn:
        message = (
            f"object {index + 1} has no pixel of its own, or is not among the first 254; its box is written"
        )
        export.lose("no-outline", sample, message)
    if covered:
        export.lose(
            "outlines-overlap", sample, f"{covered} pixels of outlines are those of later objects now"
        )
    if any(shape is not None and shape.polygons for shape in shapes):
        export.lose("outline-as-pixels", sample, "polygons are written as the pixels they cover")
    path = export.out / "SegmentationObject" / f"{stem}.png"
    write_numbered(path, numbers)
    export.written.append(path)
    return True


def _annotation(sample: Sample, name: str, size: tuple[int, int], has_outlines: bool) -> ElementTree.Element:
    root = ElementTree.Element("annotation")
    add(root, "folder", "JPEGImages")
    add(root, "filename", name)
    stated = add(root, "size")
    for tag, value in zip(("width", "height", "depth"), (*size, 3), strict=True):
        add(stated, tag, str(value))
    add(root, "segmented", str(int(has_outlines)))
    ignored = sample.is_ignored.tolist()
    for index, (box, label) in enumerate(zip(sample.boxes.tolist(), sample.labels, strict=True)):
        item = add(root, "object")
        add(item, "name", label)
        add(item, "pose", "Unspecified")
        add(item, "truncated", "0")
        add(item, "difficult", str(int(ignored[index])))
        corners = add(item, "bndbox")
        for tag, value in zip(CORNERS, (box[0] + 1, box[1] + 1, box[2], box[3]), strict=True):
            add(corners, tag, decimal(value))
    return root
