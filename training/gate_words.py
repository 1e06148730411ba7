"""The gate's answer in sentences: the verdict first, then every reason with class, figures, sizes, boards."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_vit.calibration import Calibration
from inspect_vit.gate_report import ClassResult, FalseCallResult, Gate, MissedDefect, NewCall, Result

MAX_NAMED = 5


def overall(results: Sequence[Result]) -> Result:
    """Fail if any failed, else insufficient if any is; all must pass."""
    if "fail" in results:
        return "fail"
    return "insufficient" if "insufficient" in results else "pass"


def gate_words(gate: Gate, *, errors: Sequence[int], before: Calibration | None) -> tuple[str, ...]:
    """The sentences of a gate's `words`.

    Args:
        errors: pictures with verdict ERROR of base and candidate.
        before: the base's calibration.
    """
    words = [_verdict(gate)]
    words += [class_words(one, gate.margin, gate.confidence) for one in gate.classes if one.result == "fail"]
    if gate.false_calls.result == "fail":
        words.append(false_call_words(gate.false_calls, gate.false_call_margin, gate.confidence))
    short = [one for one in gate.classes if one.result == "insufficient"]
    words += [class_words(one, gate.margin, gate.confidence) for one in short]
    if gate.false_calls.result == "insufficient":
        words.append(false_call_words(gate.false_calls, gate.false_call_margin, gate.confidence))
    if gate.calibration is not None:
        words += [f"target not kept, {claim.words}" for claim in gate.calibration.claims if not claim.kept]
    words += _promises(gate, before)
    words += [f"new class {one.label}: {one.found} of {one.num_defects} found" for one in gate.new_classes]
    if gate.retired_classes:
        words.append(f"retired, not compared: {', '.join(gate.retired_classes)}")
    if gate.data.left_out:
        words.append(
            f"{gate.data.left_out} labelled defects do not count: they lie in ignore zones of recipe "
            f"{gate.recipe!r}, or are smaller than it looks for"
        )
    if any(errors):
        words.append(
            f"verdict ERROR on {errors[0]} pictures by the base, on {errors[1]} by the candidate; what is on "
            "them counts as missed, and their boards as stopped"
        )
    return tuple(words)


def class_words(one: ClassResult, margin: float, confidence: float) -> str:
    """What the boards say of one class."""
    met = f"{one.label}: {one.boards_newly_missed} of {one.num_boards} boards newly missed"
    sure = _sure(one.bound, confidence)
    named = _named(one.missed, one.newly_missed)
    if one.result == "pass":
        return f"{met} ({sure}){named}"
    if one.result == "fail":
        return f"{met}, more than the margin of {_percent(margin)} ({sure}){named}"
    return (
        f"{met} ({sure}; wanted {_percent(margin)}): needs {one.needs} more boards with a confirmed "
        f"{one.label}, none newly missed{named}"
    )


def false_call_words(false: FalseCallResult, margin: float, confidence: float) -> str:
    """What the boards say of false calls."""
    met = (
        f"false calls: {false.newly} of {false.num_boards} boards newly stopped for nothing, "
        f"{false.cleared} no longer"
    )
    sure = _sure(false.bound, confidence)
    where = "; ".join(_call(call) for call in false.calls[:MAX_NAMED])
    named = f": {where}{'; ...' if len(false.calls) > MAX_NAMED else ''}" if where else ""
    if false.result == "pass":
        return f"{met} ({sure}){named}"
    if false.result == "fail":
        return f"{met}, more than the margin of {_percent(margin)} ({sure}){named}"
    return (
        f"{met} ({sure}; wanted {_percent(margin)}): needs {false.needs} more boards, good ones as well, "
        f"none newly stopped{named}"
    )


def _verdict(gate: Gate) -> str:
    pair = f"{gate.candidate.name} {gate.candidate.version} against {gate.base.name} {gate.base.version}"
    on = f"{gate.data.boards} boards, {gate.mode.replace('_', ' ')}"
    if gate.result == "pass":
        return (
            f"PASS: {pair} on {on}: {_percent(gate.confidence)} sure of each old class that at most "
            f"{_percent(gate.margin)} of boards with such a defect have one newly missed, and that false "
            f"calls stop at most {_percent(gate.false_call_margin)} more boards"
        )
    if gate.result == "fail":
        return f"FAIL: {pair} on {on}: the candidate is worse than the margin allows"
    return f"INSUFFICIENT: {pair} on {on}: nothing speaks against the candidate, but the boards are too few"


def _promises(gate: Gate, before: Calibration | None) -> list[str]:
    """Claims of the base's calibration that the candidate's does not keep."""
    kept = {
        (claim.label, claim.max_miss_rate, claim.confidence)
        for claim in (gate.calibration.claims if gate.calibration is not None else ())
        if claim.kept
    }
    return [
        f"promise of the base that would be lost, {claim.words}"
        for claim in (before.claims if before is not None else ())
        if claim.kept and (claim.label, claim.max_miss_rate, claim.confidence) not in kept
    ]


def _named(missed: Sequence[MissedDefect], count: int) -> str:
    """Size and board of the first few."""
    if not missed:
        return ""
    where = "; ".join(
        f"{one.size_px:.0f} px on {one.picture}{f' (board {one.group})' if one.group else ''}"
        for one in missed[:MAX_NAMED]
    )
    return f": {where}{f'; ... {count} in all' if count > MAX_NAMED else ''}"


def _call(call: NewCall) -> str:
    what = "not inspected" if call.label is None else f"{call.label} {call.score:.2f}"
    return f"{what} on {call.picture}{f' (board {call.group})' if call.group else ''}"


def _sure(bound: float | None, confidence: float) -> str:
    return "no bound" if bound is None else f"at most {_percent(bound)}, {_percent(confidence)} sure"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
