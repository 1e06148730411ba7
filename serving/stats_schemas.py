"""Figures of the line on the wire: GET /v1/stats. docs/figures.md says how each is counted."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field, FiniteFloat

from serving.schemas import Share, Wire

Bucket = Literal["hour", "day"]


class Rate(Wire):
    """A count and what it is a share of."""

    count: int = Field(ge=0)
    of: FiniteFloat = Field(ge=0, description="the denominator")
    unit: str = Field(description="what one of the denominator is")
    value: FiniteFloat | None = Field(description="count / of; null: nothing to divide by")
    ppm: FiniteFloat | None = Field(description="1e6 x value")
    lower: Share | None = Field(
        None, description="of a share of boards: 95 % exact interval (Clopper-Pearson); else null"
    )
    upper: Share | None = None


class BoardCounts(Wire):
    """Inspections of the span. Those of challenge boards are in `challenge` alone."""

    inspected: int = Field(description="PASS and FAIL, every attempt")
    passed: int
    failed: int
    not_inspected: int = Field(description="ERROR: in no rate")
    first: int = Field(
        description="inspected, and the first attempt of a serial; a board without a serial is always a first"
    )
    without_serial: int = Field(description="inspected without a serial: one that came back was not known")
    failed_open: int = Field(
        description="of the failed: nobody has finished the review; in no count of words"
    )
    hasty: int = Field(description="reviews that were too quick to be true: they count as none")
    challenge: int = Field(description="inspections of challenge boards: in no other figure")


class FirstPassYield(Wire):
    """Share of first attempts that were good. ERROR boards are apart: they were not inspected."""

    before_review: Rate = Field(description="verdict PASS")
    after_review: Rate = Field(
        description="good after review where one is done, else verdict PASS; a FAIL nobody reviewed is bad"
    )


class FalseCallFigures(Wire):
    """Listed calls with the word false_call in finished reviews. While `boards.failed_open` is not 0, there
    may be more."""

    count: int
    boards: Rate = Field(description="FAIL boards that review found good, of the boards inspected")
    rates: tuple[Rate, ...] = Field(
        description="per board, and per 18x24 inch panel side (2787 cm2) and per mm2 over the boards whose "
        "size in mm is known"
    )


class EscapeFigures(Wire):
    """Boards that were passed and are bad, as far as anyone knows."""

    boards: Rate = Field(description="of the boards that were passed: verdict PASS, or good after review")
    by_review: int = Field(description="of them: PASS boards that a review found bad")
    by_test: int = Field(description="of them: failed in-circuit or functional test after they were passed")
    missed_defects: int = Field(description="defects that reviews added, on failed boards too")


class ParetoLine(Wire):
    """One class or one recipe; the most called first."""

    name: str | None = Field(description="null: inspected without a recipe")
    calls: int = Field(
        description="listed on boards that failed or were reviewed, by the class that was called"
    )
    real: int = Field(description="by the class after review")
    false_calls: int = Field(description="by the class that was called")
    process_indicators: int
    missed: int
    share: Share = Field(description="of all calls")
    cumulative: Share = Field(description="of all calls, with the lines before it")


class ReferenceSize(Wire):
    name: str
    width: int
    height: int


class Place(Wire):
    """A listed call, for a heat map."""

    x: FiniteFloat = Field(description="px of the golden reference")
    y: FiniteFloat
    label: str = Field(description="after review, where there is one")
    word: Literal["real", "false_call", "process_indicator"] | None = Field(description="null: no word yet")
    reference: str = Field(description="whose px; empty: of the posted picture")


class TrendPoint(Wire):
    start: AwareDatetime
    boards: int = Field(description="first attempts inspected")
    first_pass_yield: Share | None = Field(description="before review")
    false_call_rate: FiniteFloat | None = Field(description="false calls per board inspected")
    lower: Share | None = Field(description="control limits of first_pass_yield for so many boards")
    upper: Share | None
    out_of_control: bool = Field(description="first_pass_yield lies outside them")


class AuditFigures(Wire):
    """PASS boards that were drawn to be looked at all the same."""

    drawn: int
    reviewed: int
    escapes: int = Field(description="of the reviewed: bad after all")
    escape_rate: Rate = Field(description="escapes of the reviewed: what to expect of all that passed")


class Agreement(Wire):
    """Calls that two people gave a word. The second may have seen the first one's word."""

    calls: int
    agreed: int
    kappa: FiniteFloat | None = Field(
        description="Cohen's: 1 full agreement, 0 as by chance; null: no such call, or only one word in use"
    )


class Stats(Wire):
    since: AwareDatetime = Field(description="first moment counted; inclusive")
    until: AwareDatetime = Field(description="exclusive")
    asked_since: AwareDatetime = Field(
        description="earlier than `since`: retention has deleted boards of the days between"
    )
    recipe: str | None
    bucket: Bucket
    boards: BoardCounts
    first_pass_yield: FirstPassYield
    false_calls: FalseCallFigures
    escapes: EscapeFigures
    by_label: tuple[ParetoLine, ...]
    by_recipe: tuple[ParetoLine, ...]
    references: tuple[ReferenceSize, ...] = Field(description="of the recipe asked for, its newest revision")
    places: tuple[Place, ...] = Field(description="newest boards first; empty unless a recipe is asked for")
    num_places: int = Field(description="of them all, listed or not")
    trend: tuple[TrendPoint, ...] = Field(description="oldest first; a bucket without boards is left out")
    limits: str = Field(description="which limits the trend has")
    audit: AuditFigures
    agreement: Agreement
