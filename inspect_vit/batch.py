"""Picture files through one Inspector: pair, inspect, write reports and pictures; a bad one stops nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspect_vit import overlay
from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.attribution import attention_cells
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.intake import with_reference_faults
from inspect_vit.pictures import MAX_PIXELS
from inspect_vit.report import inspection_report, refused_report
from inspect_vit.results import InspectionResult, IntakeReport
from inspect_vit.trace import inspect_traced

TEST_ENDING, REFERENCE_ENDING = "_test", "_temp"
"""DeepPCB's names: board_01_test.png was made to look like board_01_temp.png."""

Loaded = tuple[NDArray[np.uint8], IntakeReport]


@dataclass(frozen=True)
class Pair:
    """A board's file with its golden reference's; `fault` says why there should be one and is none."""

    image: Path
    reference: Path | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Answer:
    """One board's report, and the files that were written for it."""

    report: dict[str, Any]
    written: tuple[Path, ...]


def pair_references(
    images: Sequence[Path], *, reference: Path | None = None, references: Path | None = None
) -> list[Pair]:
    """Give each board its reference: the one named, or from a folder by name, or none.

    In a folder, the reference of X_test is X_temp, whatever the endings; else the file of the same name.

    Raises:
        ConfigError: both are given, the folder is none, or an image is a folder.
    """
    for image in images:
        if image.is_dir():
            raise ConfigError(f"{image} is a folder; name the pictures in it, as {image / '*.png'}")
    if reference is not None and references is not None:
        raise ConfigError("--reference and --references exclude each other: name one picture or one folder")
    if references is None:
        return [Pair(image, reference) for image in images]
    if not references.is_dir():
        raise ConfigError(f"--references {references} is not a folder; for one picture use --reference")
    by_stem: dict[str, Path] = {}
    for path in sorted(references.iterdir()):
        if path.is_file():
            by_stem.setdefault(path.stem, path)
    return [_pair(image, references, by_stem) for image in images]


def inspect_files(
    inspector: Inspector,
    pairs: Sequence[Pair],
    *,
    out: Path,
    min_score: float | None = None,
    recipe: str | None = None,
    camera: str | None = None,
) -> Iterator[Answer]:
    """Inspect boards one by one and write NAME.json and NAME_overlay, _defect_map, _gate, _sheet.png to out.

    A picture that cannot be read or inspected gives a report with verdict ERROR and no pictures.

    Raises:
        OSError: `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    shared: dict[Path, Loaded] = {}
    for pair, name in zip(pairs, unique_names([pair.image for pair in pairs]), strict=True):
        links = {"image": str(pair.image)}
        written: list[Path] = []
        try:
            if pair.fault is not None:
                raise ImageError(pair.fault)
            image, intake = read_image(pair.image, max_pixels=MAX_PIXELS)
            laid = golden = None
            if pair.reference is not None:
                good, good_intake = _read_shared(pair.reference, shared)
                intake = with_reference_faults(intake, good_intake)
                links["reference"] = str(pair.reference)
                laid = lay_under(image, good)
                golden = laid.picture
            settings = {"min_score": min_score, "intake": intake, "recipe": recipe, "camera": camera}
            result, attention = _inspect(inspector, image, laid, settings)
        except ImageError as error:
            model = inspector.metadata
            report = refused_report(
                inspection_id=name,
                reason=str(error),
                model_name=model.name,
                model_version=model.version,
                links=links,
            )
        else:
            for kind, picture in _draw(image, golden, result, attention):
                path = out / f"{name}_{kind}.png"
                path.write_bytes(overlay.encode_png(picture))
                links[kind] = path.name
                written.append(path)
            report = inspection_report(result, inspection_id=name, intake=intake, links=links)
        path = out / f"{name}.json"
        path.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        yield Answer(report, (path, *written))


def _inspect(
    inspector: Inspector,
    image: NDArray[np.uint8],
    laid: LaidReference | None,
    settings: dict[str, Any],
) -> tuple[InspectionResult, dict[str, NDArray[np.float32]]]:
    """Result and attention on cells, by one pass where the board is one piece."""
    if inspector.plan(image).num_tiles > 1:
        return (
            inspector.inspect(image, reference=laid, **settings),
            inspector.attention(image, reference=laid),
        )
    result, traced = inspect_traced(inspector, image, reference=laid, **settings)
    return result, {level: attention_cells(inspector, traced, level) for level in LEVEL_NAMES}


def unique_names(images: Sequence[Path]) -> list[str]:
    """One name per file for what is written: its stem, with a number where two files share one."""
    names: list[str] = []
    for image in images:
        name, number = image.stem, 1
        while name in names:
            number += 1
            name = f"{image.stem}-{number}"
        names.append(name)
    return names


def _pair(image: Path, folder: Path, by_stem: dict[str, Path]) -> Pair:
    wanted = [image.stem]
    if image.stem.endswith(TEST_ENDING):
        wanted.insert(0, image.stem.removesuffix(TEST_ENDING) + REFERENCE_ENDING)
    for stem in wanted:
        if stem in by_stem and by_stem[stem].resolve() != image.resolve():
            return Pair(image, by_stem[stem])
    return Pair(image, fault=f"no reference in {folder}: looked for {' and '.join(wanted)} with any ending")


def _read_shared(path: Path, shared: dict[Path, Loaded]) -> Loaded:
    """Read a reference; the last one is kept, because many boards often share it."""
    if path not in shared:
        shared.clear()
        try:
            shared[path] = read_image(path, max_pixels=MAX_PIXELS)
        except ImageError as error:
            raise type(error)(f"reference: {error}") from error
    return shared[path]


def _draw(
    image: NDArray[np.uint8],
    golden: NDArray[np.uint8] | None,
    result: InspectionResult,
    attention: dict[str, NDArray[np.float32]],
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    yield "overlay", overlay.render_overlay(image, result)
    yield "defect_map", overlay.render_defect_map(result)
    yield "gate", overlay.render_gate(image, result)
    yield "sheet", overlay.render_sheet(image, golden, result, attention)
