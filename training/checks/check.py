"""`inspect-vit data check`: read a labelled set, look at every picture once, say what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from pathlib import Path

import numpy as np

from inspect_vit.console import say, stdout
from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.results import Sample
from training.checks.classes import Lookalikes, check_looks, check_names, choose_examples, compare_classes
from training.checks.duplicates import Likeness, Pair, confirm, find_pairs
from training.checks.findings import CheckReport, Finding, in_order
from training.checks.labels import count
from training.checks.pictures import POOL_FROM, PictureFacts, examine_all, new_pool, num_workers
from training.checks.repeats import check_boards, check_copies, check_pairs, check_references, find_copies
from training.checks.report_page import write_page
from training.checks.table import print_report
from training.checks.verdicts import STORED_SIZE_FAULTS, judge_picture
from training.formats.dataset import DataSet
from training.formats.pictures import list_pictures
from training.formats.references import GroupRule, ReferenceRule
from training.formats.registry import read_dataset
from training.progress import track
from training.quarantine import LIST_NAME, write_quarantine

JSON_NAME, PAGE_NAME = "check.json", "check.html"
MAX_CONFIRMED = 2
"""Of the pictures that look the same when small, so many are compared at full size with each."""
MASK_FOLDERS = frozenset({"ground_truth", "masks", "segmentationclass", "segmentationobject"})
"""Pictures in these are labels themselves."""


def run_check(
    path: str | Path,
    *,
    out: str | Path,
    format: str = "auto",
    references: ReferenceRule | None = None,
    groups: GroupRule | None = None,
    workers: int | None = None,
    limit: int | None = None,
) -> CheckReport:
    """Check a set, print the table, and write check.json, check.html and quarantine.json into `out`.

    Args:
        format: a name in `formats.registry.FORMATS`, or "auto".
        references, groups: rules for what the format itself does not say.
        workers: processes; default one per core.
        limit: look at this many pictures, evenly spaced, instead of all.

    Raises:
        ConfigError: nothing can be read there, or an impossible option.
    """
    data = read_dataset(path, format=format, references=references, groups=groups)
    for remark in data.remarks:
        say(remark)
    report = check_dataset(data, workers=workers, limit=limit)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    written = tuple(out / name for name in (PAGE_NAME, JSON_NAME, LIST_NAME))
    write_page(report, written[0])
    text = json.dumps(report.as_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(written[1], (text + "\n").encode())
    write_quarantine(written[2], report.quarantine())
    print_report(report, stdout())
    say(f"wrote {', '.join(str(file) for file in written)}")
    return replace(report, written=written)


def check_dataset(data: DataSet, *, workers: int | None = None, limit: int | None = None) -> CheckReport:
    """Check a set that was read; writes and prints nothing but progress.

    Raises:
        ConfigError: a limit or a number of workers below 1.
    """
    if min(workers or 1, 1 if limit is None else limit) < 1:
        raise ConfigError(f"workers {workers}, limit {limit}: wanted 1 or more, or none given")
    samples = list(data.samples)
    if limit is not None and limit < len(samples):
        samples = [samples[i] for i in np.linspace(0, len(samples) - 1, limit).round().astype(int)]
    facts = [PictureFacts()] * len(samples)
    examined = examine_all(samples, workers=workers)
    for number, found in track(examined, total=len(samples), label="checking pictures"):
        facts[number] = found
    pairs, copies = _find_repeats(samples, facts, workers)
    told: dict[Path, set[str]] = {}
    for fault in data.faults:
        if fault.image is not None:
            told.setdefault(fault.image, set()).add(fault.kind)
    findings = list(_from_reader(data, samples, facts))
    for sample, found in zip(samples, facts, strict=True):
        findings += judge_picture(sample, found, told.get(sample.image, ()))
    examples = choose_examples(samples)
    labels = Counter(label for sample in samples for label in sample.labels)
    findings += check_names(data.class_names, labels, examples)
    findings += check_looks(_compare_classes(samples, facts), examples)
    findings += check_copies(samples, copies)
    findings += check_pairs(samples, pairs)
    findings += check_boards(samples, pairs)
    findings += check_references(samples, facts)
    findings += _find_unlabelled(data)
    return CheckReport(
        root=data.root,
        format=data.format,
        num_samples=len(data.samples),
        counts=count(samples, data.class_names),
        findings=in_order(findings),
    )


def _from_reader(
    data: DataSet, samples: Sequence[Sample], facts: Sequence[PictureFacts]
) -> Iterator[Finding]:
    """The reader's faults; what only says that EXIF turned a picture is said of its labels instead."""
    turned = {s.image for s, found in zip(samples, facts, strict=True) if found.orientation >= 5 and s.labels}
    for fault in data.faults:
        if fault.kind not in STORED_SIZE_FAULTS or fault.image not in turned:
            yield Finding(fault.kind, fault.message, fault.image, fault.where)


def _find_repeats(
    samples: Sequence[Sample], facts: Sequence[PictureFacts], workers: int | None
) -> tuple[list[Pair], list[list[int]]]:
    """Pairs of different pictures that look alike, and groups of pictures that are one."""
    copies = find_copies(facts)
    repeated = {number for numbers in copies for number in numbers[1:]}
    distinct = [n for n, found in enumerate(facts) if found.digest and n not in repeated]
    pairs: list[Pair] = []
    unsure: list[Pair] = []
    searched = find_pairs([facts[number].thumb for number in distinct])
    for _, found in track(searched, total=len(distinct), label="comparing pictures"):
        own = [replace(p, first=distinct[p.first], second=distinct[p.second]) for p in found]
        near = [pair for pair in own if pair.likeness == "near"]
        unsure += near[:MAX_CONFIRMED]
        pairs += [replace(p, likeness="board") for p in own if p not in near[:MAX_CONFIRMED]]
    answers = _confirm_all(samples, unsure, workers)
    for pair, likeness in track(answers, total=len(unsure), label="comparing again at full size"):
        if likeness is not None:
            pairs.append(replace(pair, likeness=likeness))
    return sorted(pairs, key=lambda pair: (pair.second, pair.first)), copies


def _confirm_all(
    samples: Sequence[Sample], pairs: Sequence[Pair], workers: int | None
) -> Iterator[tuple[Pair, Likeness | None]]:
    jobs = [(samples[pair.first].image, samples[pair.second].image, pair.turn) for pair in pairs]
    count = num_workers(workers)
    if count == 1 or len(pairs) < POOL_FROM:
        for pair, job in zip(pairs, jobs, strict=True):
            yield pair, confirm(*job)
        return
    with new_pool(count) as pool:
        waiting = {pool.submit(confirm, *job): pair for pair, job in zip(pairs, jobs, strict=True)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _compare_classes(samples: Sequence[Sample], facts: Sequence[PictureFacts]) -> list[Lookalikes]:
    """Only by boxes that count: neither ignored ones, nor those of pictures that cannot be read."""
    vectors, labels, pictures = [], [], []
    for number, (sample, found) in enumerate(zip(samples, facts, strict=True)):
        ignored = sample.ignored or (False,) * len(sample.labels)
        for index, vector in enumerate(found.descriptors):
            if not ignored[index]:
                vectors.append(vector)
                labels.append(sample.labels[index])
                pictures.append(number)
    return compare_classes(np.stack(vectors), labels, np.array(pictures)) if vectors else []


def _find_unlabelled(data: DataSet) -> Iterator[Finding]:
    """Pictures below the folder of the set that are no sample, no reference, no mask, and in no fault."""
    if not data.root.is_dir():
        return
    known = {path for sample in data.samples for path in (sample.image, sample.reference) if path is not None}
    known |= {fault.image for fault in data.faults if fault.image is not None}
    for path in list_pictures(data.root, deep=True):
        inside = path.relative_to(data.root)
        folders = {part.lower() for part in inside.parts[:-1]}
        hidden = any(part.startswith((".", "__")) for part in inside.parts)
        if path.resolve() not in known and not hidden and not folders & MASK_FOLDERS:
            yield Finding(
                "unlabelled-image", f"no label names {inside.as_posix()}", path.resolve(), str(inside)
            )
