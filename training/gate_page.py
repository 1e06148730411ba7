"""The gate's answer as a Markdown page: the verdict first, then every figure with its n."""

from __future__ import annotations

from inspect_vit.gate_report import ClassResult, Gate
from training.report_table import table

MAX_ROWS = 30

METHOD = """## How it is judged

* A defect is newly missed when the base calls it at its thresholds in production and the candidate, at the
  thresholds it would have there, does not. A call finds a defect that it overlaps with an IoU above 0.33.
* A board counts once: of the boards with a defect of the class, those on which any such defect is newly
  missed. The bound is Clopper and Pearson's, exact and one-sided. Pass: the bound is within the margin. Fail:
  the share itself is above it. Insufficient: too few boards to tell.
* A board is stopped for nothing by a call that shares no area with any labelled defect, or by verdict ERROR.
  The net bound also counts the boards that are no longer stopped; either bound within the margin passes.
* All must pass. docs/promotion.md has the reasons."""


def as_markdown(gate: Gate) -> str:
    """The page."""
    sections = [
        f"# {gate.result.upper()}: may {gate.candidate.name} replace {gate.base.name}?",
        "\n".join(f"* {sentence}" for sentence in gate.words),
        _data(gate),
        _classes(gate),
        _false_calls(gate),
        _sizes(gate),
        _missed(gate),
        _new_calls(gate),
        _thresholds(gate),
        METHOD,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _data(gate: Gate) -> str:
    board = "the pictures of a group" if gate.unit == "group" else "a picture"
    return (
        f"{gate.data.pictures} pictures of {gate.data.boards} boards (one board: {board}) with "
        f"{gate.data.defects} defects; {'; '.join(gate.data.sets)}; fingerprint {gate.data.fingerprint}. "
        f"Inspected {gate.mode.replace('_', ' ')}, a defect found by a call of {gate.found_by}. Margin "
        f"{_percent(gate.margin)}, for false calls {_percent(gate.false_call_margin)}, "
        f"{_percent(gate.confidence)} sure. {gate.created}."
    )


def _classes(gate: Gate) -> str:
    rows = [
        [
            one.label,
            one.result,
            f"{one.boards_newly_missed} of {one.num_boards}",
            _percent(one.bound),
            str(one.needs or "-"),
            f"{one.newly_missed} of {one.num_defects}",
            str(one.newly_found),
            f"{one.base_missed} / {one.candidate_missed}",
        ]
        for one in gate.classes
    ]
    rows += [
        [f"{one.label} (new)", "-", "-", "-", "-", f"- of {one.num_defects}", str(one.found), "- / -"]
        for one in gate.new_classes
    ]
    header = (
        "class",
        "result",
        "boards newly missed",
        "bound",
        "needs boards",
        "defects newly missed",
        "newly found",
        "missed by base / candidate",
    )
    return f"## Defects\n\n{table(header, rows)}"


def _false_calls(gate: Gate) -> str:
    false = gate.false_calls
    header = (
        "result",
        "boards newly stopped",
        "bound",
        "no longer stopped",
        "net bound",
        "needs boards",
        "stopped by base / candidate",
    )
    row = [
        false.result,
        f"{false.newly} of {false.num_boards}",
        _percent(false.bound),
        str(false.cleared),
        _percent(false.net_bound),
        str(false.needs or "-"),
        f"{false.base_boards} / {false.candidate_boards}",
    ]
    return f"## Boards stopped for nothing\n\n{table(header, [row])}"


def _sizes(gate: Gate) -> str:
    ends = {bucket.max_px for one in gate.classes for bucket in one.by_size}
    if not any(one.newly_missed for one in gate.classes):
        return ""
    order = sorted(ends, key=lambda end: (end is None, end or 0.0))
    header = ["class", *("longer" if end is None else f"up to {end:g} px" for end in order)]
    rows = [[one.label, *(_bucket(one, end) for end in order)] for one in gate.classes]
    return f"## Newly missed defects by size\n\n{table(header, rows)}"


def _bucket(one: ClassResult, end: float | None) -> str:
    found = [bucket for bucket in one.by_size if bucket.max_px == end]
    return f"{found[0].newly_missed} of {found[0].n}" if found else "-"


def _missed(gate: Gate) -> str:
    rows = [
        [
            one.label,
            f"{missed.size_px:.0f}",
            missed.picture,
            missed.group or "-",
            ", ".join(f"{edge:.0f}" for edge in missed.box_xyxy),
            f"{missed.base_score:.2f}",
            "-" if missed.candidate_score is None else f"{missed.candidate_score:.2f}",
        ]
        for one in gate.classes
        for missed in one.missed
    ]
    if not rows:
        return ""
    header = ("class", "size (px)", "picture", "board", "left, top, right, bottom", "base", "candidate")
    return f"## Newly missed defects\n\n{table(header, rows[:MAX_ROWS])}{_more(len(rows))}"


def _new_calls(gate: Gate) -> str:
    rows = [
        [
            "verdict ERROR" if call.label is None else call.label,
            "-" if call.score is None else f"{call.score:.2f}",
            call.picture,
            call.group or "-",
            "-" if call.box_xyxy is None else ", ".join(f"{edge:.0f}" for edge in call.box_xyxy),
        ]
        for call in gate.false_calls.calls
    ]
    if not rows:
        return ""
    header = ("called", "score", "picture", "board", "left, top, right, bottom")
    return f"## On boards newly stopped\n\n{table(header, rows[:MAX_ROWS])}{_more(len(rows))}"


def _thresholds(gate: Gate) -> str:
    source = "its own" if gate.calibration is None else "chosen on these boards for the targets"
    names = [*gate.thresholds, *(name for name in gate.base_thresholds if name not in gate.thresholds)]
    rows = [
        [
            name,
            *(
                f"{side[name]:.3f}" if name in side else "-"
                for side in (gate.base_thresholds, gate.thresholds)
            ),
        ]
        for name in names
    ]
    return f"## Thresholds\n\nThe candidate's are {source}.\n\n{table(('class', 'base', 'candidate'), rows)}"


def _more(count: int) -> str:
    return f"\n\n... and {count - MAX_ROWS} more in gate.json" if count > MAX_ROWS else ""


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"
