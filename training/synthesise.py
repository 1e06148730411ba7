"""Folders of synthetic pairs: NAME_test.png, NAME_temp.png (its reference) and COCO labels.

Pair i is a function of the settings and i alone, so any number of workers writes the same bytes, and a run
that was stopped goes on where it was: `labels/NAME.json` is written last and marks a pair as complete.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np

from inspect_vit.errors import ConfigError, ImageError
from training.colour_style import draw_style
from training.copper import Which
from training.defect_kinds import DEFECT_KINDS
from training.defects import checked_weights
from training.pair_files import write_labels, write_pair, write_whole
from training.pairs import DefectPlan, Pair, colour_pair, picture_pair, scan_pair
from training.progress import track
from training.render import ScanStyle
from training.sources import Source, cut_picture, draw_artwork, find_sources

SETTINGS = "synthesis.json"
MAX_DEFECTS = 10_000
MAX_PARTS = 20
"""Parts of pictures tried for a pair before giving up."""
_RECIPE = 1
"""Raised when the same settings give other pictures than before."""


@dataclass(frozen=True)
class Recipe:
    """All that decides a pair but its number."""

    sources: tuple[Source, ...]
    size: int
    style: Literal["scan", "colour"]
    px_per_mm: tuple[float, float]
    seed: int
    plan: DefectPlan
    scan: ScanStyle
    mask: str | None
    finish: str | None
    copper: Which
    nuisance: float


@dataclass(frozen=True)
class Synthesised:
    """What `synthesise` wrote."""

    folder: Path
    labels: Path
    num_pairs: int
    num_kept: int
    """Pairs that were complete before."""
    num_good: int
    """Pairs without a defect."""
    defects: dict[str, int] = field(default_factory=dict)
    """Number of each class."""
    refused: tuple[str, ...] = ()
    """Pictures of the source in which no copper was found, and why."""


def synthesise(
    out: str | Path,
    *,
    count: int,
    source: str | Path | Sequence[str | Path] = "procedural",
    size: int = 640,
    style: Literal["scan", "colour"] = "scan",
    px_per_mm: float | tuple[float, float] = 48.0,
    seed: int = 0,
    plan: DefectPlan | None = None,
    scan: ScanStyle | None = None,
    mask: str | None = None,
    finish: str | None = None,
    copper: Which = "auto",
    nuisance: float = 1.0,
    workers: int | None = None,
) -> Synthesised:
    """Write `count` pairs of pictures with COCO labels into a folder.

    Args:
        source: "procedural", a folder of KiCad designs, a folder of good pictures, or several of these,
            which take turns by chance.
        size: side of the square pictures, px; a picture of the source that is smaller stays as it is.
        style: how artwork is shown; pictures of the source keep their own look.
        px_per_mm: of artwork; a range is drawn from evenly in logarithm.
        plan: which defects; default as in DeepPCB.
        scan: misregistration, etching, dust and JPEG of scans; the first three serve colour too.
        mask, finish: of all colour boards ("green" ... "none"; "hasl", "enig", "copper"); at random if None.
        copper: which tone of the source's pictures is copper.
        nuisance: strength of dust, scratches, smudges and glare in colour; 0 for none.
        workers: processes; all cores if None.

    Raises:
        ConfigError: a setting that cannot work, or a folder with pairs of other settings.
        ImageError: copper was found in none of the source's pictures.
    """
    low, high = (px_per_mm, px_per_mm) if isinstance(px_per_mm, (int, float)) else px_per_mm
    plan = plan or DefectPlan()
    _check(count=count, size=size, style=style, scales=(low, high), workers=workers, plan=plan, seed=seed)
    draw_style(np.random.default_rng(0), mask=mask, finish=finish)
    recipe = Recipe(
        find_sources(source),
        size,
        style,
        (low, high),
        seed,
        plan,
        scan or ScanStyle(),
        mask,
        finish,
        copper,
        nuisance,
    )
    folder = Path(out).resolve()
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    _settle(folder / SETTINGS, recipe)
    missing = [number for number in range(1, count + 1) if not _is_complete(folder, number)]
    with _mapper(recipe, folder, min(workers or os.cpu_count() or 1, max(len(missing), 1))) as mapped:
        for _ in track(mapped(missing), total=len(missing), label="pairs"):
            pass
    entries = [
        json.loads(_marker(folder, number).read_text(encoding="utf-8")) for number in range(1, count + 1)
    ]
    names = [label for label in DEFECT_KINDS if plan.kinds.get(label, 0) > 0]
    labels = write_labels(folder, [(entry["image"], entry["annotations"]) for entry in entries], names)
    found = Counter(str(annotation["label"]) for entry in entries for annotation in entry["annotations"])
    return Synthesised(
        folder=folder,
        labels=labels,
        num_pairs=count,
        num_kept=count - len(missing),
        num_good=sum(not entry["annotations"] for entry in entries),
        defects={label: found[label] for label in names},
        refused=tuple(sorted({line for entry in entries for line in entry["refused"]})),
    )


def make_pair(recipe: Recipe, number: int) -> tuple[Pair, dict[str, Any]]:
    """Pair `number` of a recipe, and what is known of its board: group, licence, px_per_mm, refused."""
    rng = np.random.default_rng((recipe.seed, number))
    source = recipe.sources[int(rng.integers(len(recipe.sources)))]
    low, high = np.log(recipe.px_per_mm)
    px_per_mm = float(np.exp(rng.uniform(low, high)))
    facts: dict[str, Any] = {"refused": []}
    if source.kind == "pictures":
        unpaintable: list[str] = []
        while True:
            picture, found, group, refused = cut_picture(source, rng, recipe.size, recipe.copper)
            try:
                pair = picture_pair(
                    picture, found, rng, plan=recipe.plan, placing=recipe.scan, scale=px_per_mm / 48.0
                )
            except ImageError as error:  # this part of the picture; another may do
                unpaintable.append(f"a part of {group}: {error}")
                if len(unpaintable) == MAX_PARTS:
                    raise ImageError(f"{MAX_PARTS} parts of pictures in a row: {unpaintable[-1]}") from error
                continue
            return pair, facts | {"group": group, "refused": [*refused, *unpaintable]}
    artwork = draw_artwork(source, rng, recipe.size, px_per_mm)
    facts |= {"group": artwork.group, "px_per_mm": round(px_per_mm, 3), "license": artwork.licence}
    if recipe.style == "scan":
        return scan_pair(artwork.layers, rng, plan=recipe.plan, style=recipe.scan), facts
    look = draw_style(rng, mask=recipe.mask, finish=recipe.finish)
    pair = colour_pair(
        artwork.layers, rng, plan=recipe.plan, style=look, placing=recipe.scan, nuisance=recipe.nuisance
    )
    return pair, facts


def _check(
    *,
    count: int,
    size: int,
    style: str,
    scales: tuple[float, float],
    workers: int | None,
    plan: DefectPlan,
    seed: int,
) -> None:
    faults = [
        (count < 1, f"{count} pairs; give 1 or more"),
        (not 64 <= size <= 16_384, f"pictures of {size} px; give 64 to 16384"),
        (style not in ("scan", "colour"), f"style {style!r}; give 'scan' or 'colour'"),
        (
            not 1 <= scales[0] <= scales[1] <= 500,
            f"{scales[0]} to {scales[1]} px per mm; give 1 <= least <= most <= 500",
        ),
        (workers is not None and workers < 1, f"{workers} workers; give 1 or more"),
        (
            not 0 <= plan.count[0] <= plan.count[1] <= MAX_DEFECTS,
            f"{plan.count[0]} to {plan.count[1]} defects; give 0 <= least <= most <= {MAX_DEFECTS}",
        ),
        (
            plan.size_px[1] > size,
            f"defects of up to {plan.size_px[1]} px on pictures of {size} px; give less",
        ),
        (seed < 0, f"seed {seed}; give 0 or more"),
        (not 0 <= plan.good_share <= 1, f"a share of good boards of {plan.good_share}; give 0 to 1"),
    ]
    for wrong, message in faults:
        if wrong:
            raise ConfigError(message)
    checked_weights(plan.kinds, plan.size_px)


def _settle(path: Path, recipe: Recipe) -> None:
    """Note the settings in the folder, or find that those noted are the same."""
    settings = asdict(recipe) | {"recipe": _RECIPE}
    # Where the boards lie may change; which they are may not.
    settings["sources"] = [{"kind": source.kind, "names": source.names} for source in recipe.sources]
    text = json.dumps(settings, indent=1, default=str, sort_keys=True) + "\n"
    if not path.exists():
        write_whole(path, text)
    elif path.read_text(encoding="utf-8") != text:
        raise ConfigError(
            f"{path.parent} holds pairs of other settings (see {path.name}); give another folder"
        )


def _is_complete(folder: Path, number: int) -> bool:
    """Whether a pair's labels are readable and its pictures there."""
    marker = _marker(folder, number)
    try:
        image = json.loads(marker.read_text(encoding="utf-8"))["image"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return all((folder / str(image[key])).is_file() for key in ("file_name", "reference"))


def _marker(folder: Path, number: int) -> Path:
    return folder / "labels" / f"board_{number:06d}.json"


_running: tuple[Recipe, Path] | None = None
"""What this worker process works on."""


def _start_worker(recipe: Recipe, folder: Path) -> None:
    global _running
    _running = (recipe, folder)
    cv2.setNumThreads(1)


def _work(number: int) -> int:
    assert _running is not None
    _make_and_write(*_running, number)
    return number


def _make_and_write(recipe: Recipe, folder: Path, number: int) -> None:
    pair, facts = make_pair(recipe, number)
    marker = _marker(folder, number)
    image, annotations = write_pair(folder, marker.stem, pair)
    image = {**image, "group": facts.pop("group"), "license": facts.pop("license", "")}
    write_whole(marker, json.dumps({"image": image, "annotations": annotations, **facts}) + "\n")


@contextmanager
def _mapper(recipe: Recipe, folder: Path, workers: int) -> Iterator[Callable[[Sequence[int]], Iterator[int]]]:
    """Something that makes the pairs of given numbers, here or in `workers` processes."""
    if workers == 1:

        def here(numbers: Sequence[int]) -> Iterator[int]:
            for number in numbers:
                _make_and_write(recipe, folder, number)
                yield number

        yield here
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(recipe, folder))
    try:
        yield lambda numbers: pool.map(_work, numbers)
    finally:
        pool.shutdown(cancel_futures=True)
