"""The doctor's cheap checks while a model trains: what is ill is said once, when it is first seen."""

from __future__ import annotations

from inspect_vit.console import say
from inspect_vit.doctor import quick_checks
from inspect_vit.doctor_findings import Health
from inspect_vit.model import HierarchicalViT, ModelOutput

CHECKUP_EVERY = 500
"""Steps between two looks."""


class Checkup:
    """Remembers what was said."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def look(self, model: HierarchicalViT, output: ModelOutput, *, step: int) -> None:
        """Say what is ill and was not said before; call it between the backward pass and `zero_grad`."""
        for finding in quick_checks(model, output):
            key = (finding.check, str(finding.place))
            if finding.health is Health.ILL and key not in self._said:
                self._said.add(key)
                say(f"step {step}, ill: {finding.check}, {finding.place}: {finding.detail}; {finding.remedy}")
