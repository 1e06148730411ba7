"""`inspect-vit evaluate`: measure a checkpoint. Heavy parts are imported where they are used."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from inspect_vit.cli_data import FormatOption, GroupsOption, RedrawOption, ReferencesOption, RenameOption
from inspect_vit.cli_gate import (
    AcceptanceOption,
    AgainstOption,
    AnyClassOption,
    CacheOption,
    CameraOption,
    ConfidenceOption,
    FalseCallMarginOption,
    GoldenOption,
    MarginOption,
    ModeOption,
    RecipeOption,
    RecipeSettingsOption,
    RenamedOption,
    RetiredOption,
    TargetOption,
    ThresholdsOfOption,
    UnitOption,
    judge_promotion,
)
from inspect_vit.console import say
from inspect_vit.errors import ConfigError


def evaluate(
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Model file (.safetensors). Default: the one shipped with the package."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the set; of DeepPCB the one that holds PCBData/. "
            "Default: deeppcb under $INSPECT_VIT_DATA."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the report (JSON, Markdown, plots); made if missing.")
    ] = Path("report"),
    format: FormatOption = "auto",
    references: ReferencesOption = None,
    groups: GroupsOption = None,
    rename: RenameOption = None,
    px_per_mm: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Scale of the pictures, for false calls per area. Default: DeepPCB's, else unknown.",
        ),
    ] = None,
    redraw: RedrawOption = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Inspect this many pictures, evenly spaced. Default: all of the split."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Part of the set, as it names it. Default: test for DeepPCB (trainval holds what "
            "deeppcb-nano was trained on), everything for other sets."
        ),
    ] = None,
    shift: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Measure again with the reference moved by this many px. May be repeated."),
    ] = None,
    turn: Annotated[
        list[float] | None,
        typer.Option(help="Measure again with the reference turned by this many degrees. May be repeated."),
    ] = None,
    as_posted: Annotated[
        bool,
        typer.Option(
            "--as-posted", help="Take references as aligned. Default: align them, as the service does."
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of re-imaged references and confidence intervals.")
    ] = 0,
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness", help="Test the evidence too, on defects that were found. Default: no."
        ),
    ] = False,
    faithfulness_defects: Annotated[
        int, typer.Option(min=1, help="On how many; half a minute each on two CPU cores.")
    ] = 100,
    device: Annotated[
        str,
        typer.Option(help="Where the model runs: auto (CUDA if there is one, else CPU), cpu, cuda, cuda:N."),
    ] = "auto",
    against: AgainstOption = None,
    acceptance: AcceptanceOption = None,
    target: TargetOption = None,
    thresholds_of: ThresholdsOfOption = None,
    margin: MarginOption = 0.02,
    false_call_margin: FalseCallMarginOption = None,
    confidence: ConfidenceOption = 0.95,
    with_reference: ModeOption = None,
    unit: UnitOption = "group",
    any_class: AnyClassOption = None,
    renamed: RenamedOption = None,
    retired: RetiredOption = None,
    recipe: RecipeOption = None,
    recipe_settings: RecipeSettingsOption = None,
    golden: GoldenOption = None,
    camera: CameraOption = None,
    cache: CacheOption = None,
) -> None:
    """Measure a checkpoint on a labelled data set: AP, recall, escapes and false calls.

    With --against BASE: judge whether it may replace that one. Exit code: 0 pass, 1 fail, 3 insufficient.
    """
    from inspect_vit.checkpoint import default_checkpoint
    from training.evaluate import evaluate_checkpoint
    from training.formats.references import parse_groups, parse_references
    from training.measured_set import ReadOptions, parse_renames

    model = checkpoint or default_checkpoint()
    if against is not None:
        _refuse(
            "does not go with --against",
            {
                "--data": data,
                "--shift": shift,
                "--turn": turn,
                "--as-posted": as_posted,
                "--faithfulness": faithfulness,
                "--px-per-mm": px_per_mm,
            },
        )
    else:
        _refuse(
            "goes with --against BASE only",
            {
                "--acceptance": acceptance,
                "--target": target,
                "--thresholds-of": thresholds_of,
                "--renamed": renamed,
                "--retired": retired,
                "--recipe": recipe,
                "--recipe-settings": recipe_settings,
                "--golden": golden,
                "--cache": cache,
            },
        )
    root = data or Path(os.environ.get("INSPECT_VIT_DATA", ".")) / "deeppcb"
    reading: ReadOptions = {
        "format": format,
        "references": None if references is None else parse_references(references),
        "groups": None if groups is None else parse_groups(groups),
        "rename": parse_renames(rename or []),
        "split": split,
        "px_per_mm": px_per_mm,
        "redraw_px": redraw,
    }
    if against is not None:
        code = judge_promotion(
            model,
            against,
            out=out,
            options={
                "acceptance": acceptance or [],
                "target": target or [],
                "thresholds_of": thresholds_of,
                "margin": margin,
                "false_call_margin": false_call_margin,
                "confidence": confidence,
                "with_reference": with_reference,
                "unit": unit,
                "any_class": any_class,
                "renamed": renamed or [],
                "retired": retired or [],
                "recipe": recipe,
                "recipe_settings": recipe_settings,
                "goldens": golden or [],
                "camera": camera,
                "cache": cache,
                "limit": limit,
                "device": device,
            },
            reading=reading,
        )
        raise typer.Exit(code)
    evaluate_checkpoint(
        model,
        root,
        out=out,
        limit=limit,
        shifts=tuple(shift or ()),
        turns=tuple(turn or ()),
        as_posted=as_posted,
        device=device,
        seed=seed,
        command=[Path(sys.argv[0]).name, *sys.argv[1:]],
        **reading,
    )
    print((out / "report.md").read_text(encoding="utf-8"))
    say(f"wrote {out / 'report.md'}, {out / 'report.json'} and plots")
    if faithfulness:
        from training.faithfulness import evaluate_faithfulness

        evaluate_faithfulness(
            model,
            root,
            out=out,
            limit=limit,
            num_defects=faithfulness_defects,
            device=device,
            seed=seed,
            **reading,
        )
        print((out / "faithfulness.md").read_text(encoding="utf-8"))


def _refuse(why: str, options: Mapping[str, object]) -> None:
    """Raise for options that are given where they have no effect."""
    given = [name for name, value in options.items() if value not in (None, False)]
    if given:
        raise ConfigError(f"{given[0]} {why}; leave it out")
