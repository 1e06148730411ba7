"""What a promotion asks of the gate's answer, and of a version that no gate has looked at."""

from __future__ import annotations

from pathlib import Path

from inspect_vit.errors import InspectionError
from inspect_vit.gate_report import Gate
from serving.errors import GateRefusedError, ModelRefusedError
from serving.registry import version_file

NEXT_STEP = "inspect-vit models promote runs the gate; an override needs a reason and is in the audit trail"


def check_loads(home: Path, version: str) -> None:
    """That a version which no gate has loaded can be. Raises ModelRefusedError."""
    from inspect_vit.checkpoint import load_checkpoint

    try:
        load_checkpoint(version_file(home, version))
    except InspectionError as error:
        raise ModelRefusedError(
            f"model version {version} cannot be loaded: {error}", hint="promote another version"
        ) from error


def check_gate(
    gate: Gate | None, version: str, replaced: str | None, recipe: str | None, unjudged: str
) -> None:
    """That a gate passed, and compared what would be replaced with what would replace it.

    Args:
        unjudged: why there is no document, where the gate was asked.

    Raises:
        GateRefusedError.
    """
    if gate is None and unjudged:
        raise GateRefusedError(
            f"the gate could not judge model version {version}: {unjudged}", hint=NEXT_STEP
        )
    if gate is None:
        raise GateRefusedError(f"model version {version} has not been through the gate", hint=NEXT_STEP)
    for what, wanted, found in (
        ("is about model version", version, gate.candidate.version),
        ("compared with model version", replaced, gate.base.version),
        ("is about recipe", recipe, gate.recipe),
    ):
        if found != wanted:
            raise GateRefusedError(
                f"the gate {what} {found}, wanted {wanted}",
                hint="run the gate again: another version may have been promoted meanwhile",
            )
    if gate.result != "pass":
        raise GateRefusedError(
            f"the gate said {gate.result!r} of model version {version}: {'; '.join(gate.words)}",
            hint=NEXT_STEP,
        )
