"""Is the evidence true: maps of where a defect is are held against what the model does without that place.

For defects that the model found, each map ranks the cells around the defect. Replacing cells by the golden
reference shows whether those the map names carry the score. docs/evidence.md says why it is done this way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.perturbation import pose
from inspect_vit.results import Sample
from training.faith_examine import SHIFTS, Explain, examine, randomise
from training.faith_measures import SHARES
from training.faith_report import write_faithfulness
from training.faith_sample import Found, pick_found, reference_under
from training.measured_set import ReadOptions, read_measured_set
from training.progress import track

NUM_DEFECTS = 100
NUM_RANDOMISED = 30
"""Defects whose maps are drawn again with randomised weights."""
RANDOMISED = ("head", "model")
RECORD_NAME = "faithfulness.jsonl"
_PARTIAL_NAME = "faithfulness.partial.jsonl"
_FORMAT = 1


def evaluate_faithfulness(
    checkpoint: Path,
    data: Path,
    *,
    out: Path,
    explain: Explain | None = None,
    limit: int | None = None,
    num_defects: int = NUM_DEFECTS,
    device: str = "auto",
    seed: int = 0,
    **reading: Unpack[ReadOptions],
) -> dict[str, Any]:
    """Test the evidence on a checkpoint's true positives and write faithfulness.md, .json, plots.

    What is done is kept in `out`: the same command goes on with an interrupted run.

    Args:
        explain: makes the maps; `attribution.explanation_maps` unless given.
        limit: draw the defects from this many pairs, evenly spaced over the split, instead of all.
        num_defects: test so many.
        reading: how the set is read.

    Returns:
        The report as written to faithfulness.json.

    Raises:
        ConfigError: unreadable data, a picture without reference, or none of its defects was found.
    """
    if explain is None:
        from inspect_vit.attribution import explanation_maps

        explain = explanation_maps
    inspector = Inspector(checkpoint, device=device)
    measured = read_measured_set(data, inspector.metadata.model.class_names, **reading)
    if not measured.has_references:
        raise ConfigError(f"{data}: evidence can be tested only where every picture has its golden reference")
    samples: Sequence[Sample] = measured.samples
    if limit is not None:
        places = np.linspace(0, len(samples) - 1, min(limit, len(samples))).round().astype(int)
        samples = [samples[place] for place in places]
    out.mkdir(parents=True, exist_ok=True)
    record = measure(
        inspector, samples, explain=explain, num_defects=num_defects, seed=seed, keep=out / _PARTIAL_NAME
    )
    (out / _PARTIAL_NAME).replace(out / RECORD_NAME)
    about = {
        "model": {"name": inspector.metadata.name, "version": inspector.metadata.version},
        "data": {"set": measured.name, "split": measured.split, "images": len(samples)},
        "seed": seed,
    }
    report = write_faithfulness(record, about, out=out)
    say(f"wrote {out / 'faithfulness.md'}, {out / 'faithfulness.json'}, {out / RECORD_NAME} and plots")
    return report


def measure(
    inspector: Inspector,
    samples: Sequence[Sample],
    *,
    explain: Explain,
    keep: Path,
    num_defects: int = NUM_DEFECTS,
    num_randomised: int = NUM_RANDOMISED,
    shifts: Sequence[int] = SHIFTS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One entry per defect, as `examine` gives it; deterministic by seed.

    keep: file of JSON lines, one per defect that is done. Entries of an earlier run of the same work are
    taken from there.
    """
    found = pick_found(inspector, samples, count=num_defects, seed=seed)
    work = {
        "format": _FORMAT,
        "model": inspector.metadata.version,
        "seed": seed,
        "shifts": list(shifts),
        "randomised": num_randomised,
        "defects": [[one.sample.image.name, one.truth] for one in found],
    }
    entries = _load_kept(keep, work)
    if entries:
        say(f"going on with an interrupted run; {len(entries)} of {len(found)} defects are done")
    else:
        keep.write_text(json.dumps(work) + "\n", encoding="utf-8")
    randomised = {part: randomise(inspector, part, seed=seed) for part in RANDOMISED}
    if len(entries) < len(found):
        _say_estimate(
            inspector, found[len(entries) :], explain, shifts=shifts, redrawn=num_randomised - len(entries)
        )

    def rest() -> Iterator[dict[str, Any]]:
        for number, one in enumerate(found[len(entries) :], len(entries)):
            redrawn = randomised if number < num_randomised else {}
            yield examine(
                inspector, one, explain=explain, shifts=shifts, randomised=redrawn, seed=(seed, number)
            )

    with keep.open("a", encoding="utf-8") as file:
        for entry in track(rest(), total=len(found) - len(entries), label="testing the evidence"):
            entries.append(entry)
            file.write(json.dumps(entry) + "\n")
            file.flush()
    return entries


def _load_kept(keep: Path, work: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries that an interrupted run of the same work left; a line cut short is dropped, with the file."""
    if not keep.is_file():
        return []
    lines = keep.read_text(encoding="utf-8").split("\n")
    whole, cut = lines[:-1], lines[-1]
    if not whole or json.loads(whole[0]) != work:
        return []
    if cut:
        keep.write_text("\n".join(whole) + "\n", encoding="utf-8")
    return [json.loads(line) for line in whole[1:]]


def _say_estimate(
    inspector: Inspector, found: Sequence[Found], explain: Explain, *, shifts: Sequence[int], redrawn: int
) -> None:
    """Time the two dear steps once, and say how long all will take."""
    one = found[0]
    image = read_image(one.sample.image)[0]
    reference = reference_under(image, one.sample)
    scene = pose(inspector, image, reference=reference, defect=one.defect)
    scene.scores(np.zeros((1, *scene.region.shape), np.bool_))  # the first pass of a size is slow
    start = time.perf_counter()
    scene.scores(np.zeros((8, *scene.region.shape), np.bool_))
    pass_s = (time.perf_counter() - start) / 8
    start = time.perf_counter()
    num_maps = len(explain(inspector, image, reference=reference, defect=one.defect)) + 2
    explain_s = time.perf_counter() - start
    passes = len(found) * ((len(SHARES) - 2) * num_maps * (2 + len(shifts)) + 2 * (1 + len(shifts)))
    explanations = (1 + len(shifts)) * len(found) + len(RANDOMISED) * max(min(redrawn, len(found)), 0)
    total_s = passes * pass_s + explanations * explain_s
    say(
        f"testing {num_maps} maps of {len(found)} defects: {passes} passes over a defect's surroundings, "
        f"{explanations} explanations; about {max(round(total_s / 60), 1)} min"
    )
