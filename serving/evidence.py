"""GET /v1/inspections/{id}/evidence: can the overlays of a defect be believed, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX
from inspect_vit.legends import Note
from inspect_vit.results import InspectionResult
from serving.attention import TOP_CALL, AttentionAsk, read_ask
from serving.errors import FieldError
from serving.schemas import EVIDENCE_MAPS, EvidenceMap, EvidenceReport, MapEvidence, MapLevel

if TYPE_CHECKING:
    from inspect_vit.reliability import Reliability

PARAMETERS = {"defect", "map"}
DEFAULT_MAPS: tuple[EvidenceMap, ...] = (
    "attention_4",
    "attention_16",
    "attention_32",
    "gate",
    "rollout",
    "relevance",
    "defect_map",
)
"""Those of the published table."""
NOTHING_CALLED = "not tested: the inspection lists no defect whose score could fall"
POINT_IS_NO_CALL = "not tested: a point is no call whose score could fall"


@dataclass(frozen=True)
class Tested:
    """What an opened overlay says of itself; `found` is None where nothing could be tested."""

    found: Reliability | None
    words: str

    @property
    def note(self) -> Note:
        """For the picture's legend."""
        if self.found is None:
            title, _, reason = self.words.partition(": ")
            return Note(title, (reason.partition(" whose")[0],))
        return self.found.note

    @property
    def headers(self) -> dict[str, str]:
        """For the answer that carries the picture or the numbers."""
        if self.found is None:
            return {"evidence-reliable": "untested", "evidence-words": self.words}
        return {
            "evidence-reliable": "yes" if self.found.is_reliable else "no",
            "evidence-drop": f"{self.found.score - self.found.score_without:.4f}",
            "evidence-random-drop": f"{self.found.score - self.found.score_without_random:.4f}",
            "evidence-words": self.words,
        }


@dataclass(frozen=True)
class EvidenceAsk:
    maps: tuple[EvidenceMap, ...]
    defect: int | None
    """None: overlays opened without naming a defect, tested on the top call."""


def read_evidence_ask(query: Mapping[str, str]) -> EvidenceAsk:
    """Query parameters, already known to be among PARAMETERS.

    Raises:
        FieldError: an unknown map, or a defect that is no number.
    """
    wanted = query.get("map")
    if wanted is not None and wanted not in EVIDENCE_MAPS:
        raise FieldError(f"map: {wanted[:40]!r}, wanted one of {', '.join(EVIDENCE_MAPS)}")
    maps = DEFAULT_MAPS if wanted is None else tuple(name for name in EVIDENCE_MAPS if name == wanted)
    return EvidenceAsk(maps, read_ask({name: query[name] for name in query if name == "defect"}).defect)


def map_ask(name: EvidenceMap, defect: int | None) -> AttentionAsk | None:
    """The question whose answer is a map; None for the gate and the defect map, which are stored."""
    method, _, level = name.partition("_")
    if method == "attention":
        return AttentionAsk(level=_one_of(level), defect=defect)
    if method == "relevance":
        return AttentionAsk("relevance", _one_of(level or "all"), defect=defect or TOP_CALL)
    return AttentionAsk("rollout", "all", defect=defect or TOP_CALL) if method == "rollout" else None


def stored_map(name: EvidenceMap, result: InspectionResult, number: int) -> NDArray[np.float32]:
    """The defect map of the defect's class, or the gate map of the level with the highest share in it."""
    defect = result.defects[number - 1]
    if name == "defect_map":
        return np.asarray(result.defect_map[result.class_names.index(defect.label)], np.float32)
    return result.gate_maps[max(defect.gate_share, key=lambda level: defect.gate_share[level])]


def evidence_report(
    inspection_id: str,
    result: InspectionResult,
    ask: EvidenceAsk,
    found: Mapping[EvidenceMap, Reliability],
) -> EvidenceReport:
    """Put trials into wire words; none where the inspection lists no defects.

    Adding 0.0 makes a rounded -0.0 a plain 0.
    """
    number = (ask.defect or TOP_CALL) if result.defects else None
    first = next(iter(found.values()), None)
    return EvidenceReport(
        id=inspection_id,
        defect=number,
        label=None if number is None else result.defects[number - 1].label,
        with_reference=result.with_reference,
        area_px=None if first is None else first.num_cells * CELL_PX**2,
        maps=tuple(
            MapEvidence(
                map=name,
                link=f"/v1/inspections/{inspection_id}/{_picture(name, ask.defect)}",
                score=round(tried.score, 4),
                score_without=round(tried.score_without, 4),
                score_without_random=round(tried.score_without_random, 4),
                drop=round(tried.score - tried.score_without, 4) + 0.0,
                random_drop=round(tried.score - tried.score_without_random, 4) + 0.0,
                faithfulness=round(tried.faithfulness, 4) + 0.0,
                reliable=tried.is_reliable,
                words=tried.words,
            )
            for name, tried in found.items()
        ),
        words="" if found else NOTHING_CALLED,
    )


def _picture(name: EvidenceMap, defect: int | None) -> str:
    """The map's address under its inspection."""
    if name in ("gate", "defect_map"):
        return name
    method, _, level = name.partition("_")
    parts = [] if method == "attention" else [f"method={method}"]
    parts += [f"level={level}"] if level else []
    parts += [] if defect is None else [f"defect={defect}"]
    return f"attention?{'&'.join(parts)}"


def _one_of(level: str) -> MapLevel:
    return read_ask({"method": "relevance", "level": level}).level
