"""The `inspect-vit` command. Heavy parts are imported where they are used, so that help answers at once."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from inspect_vit import (
    cli_add_class,
    cli_calibrate,
    cli_data,
    cli_doctor,
    cli_evaluate,
    cli_keys,
    cli_models,
    cli_serve,
    cli_store,
)
from inspect_vit.cli_serve import CalibrationOption, CameraOption, CheckpointOption
from inspect_vit.console import (
    calibration_remark,
    defect_table,
    model_tables,
    say,
    stdout,
    verdict_table,
)
from inspect_vit.errors import ConfigError, InspectionError

EXIT_CODES = {"PASS": 0, "FAIL": 1, "ERROR": 3}
EXIT_USAGE, EXIT_BUG, EXIT_INTERRUPTED = 2, 70, 130
MAX_NAMED = 5

app = typer.Typer(
    help="Inspect printed circuit boards: verdict, defects, defect map, attention overlays.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(cli_data.app, name="data")
app.add_typer(cli_keys.app, name="keys")
app.add_typer(cli_models.app, name="models")
app.command()(cli_keys.audit)
app.command()(cli_evaluate.evaluate)
app.command()(cli_calibrate.calibrate)
app.command()(cli_doctor.doctor)
app.command()(cli_add_class.add_class)
app.command()(cli_serve.serve)
app.command()(cli_store.prune)
app.command()(cli_store.backup)
app.command()(cli_store.restore)

DeviceOption = Annotated[
    str, typer.Option(help="Where the model runs: auto (CUDA if there is one, else CPU), cpu, cuda, cuda:N.")
]


@app.command()
def inspect(
    images: Annotated[
        list[Path], typer.Argument(metavar="IMG...", help="Board pictures: JPEG, PNG, BMP, TIFF or WebP.")
    ],
    reference: Annotated[
        Path | None,
        typer.Option(help="Picture of a good board, for every IMG; it is aligned with each. Default: none."),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(help="Folder of such pictures: X_temp for X_test, else the same name. Default: none."),
    ] = None,
    checkpoint: CheckpointOption = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the reports (JSON) and pictures (PNG); made if missing.")
    ] = Path("report"),
    min_score: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="List defects from this score (0 to 1) on; the verdict stays. Default: the thresholds.",
        ),
    ] = None,
    calibration: CalibrationOption = None,
    recipe: Annotated[
        str | None, typer.Option(help="Recipe of the boards, as the calibration names it. Default: none.")
    ] = None,
    camera: CameraOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON report per line instead of a table.")
    ] = False,
    device: DeviceOption = "auto",
) -> None:
    """Inspect board pictures. Exit code: 0 all PASS, 1 a FAIL, 3 an ERROR (not inspected), 2 wrong usage."""
    from inspect_vit.batch import inspect_files, pair_references
    from inspect_vit.checkpoint import default_checkpoint
    from inspect_vit.inspector import Inspector
    from training.progress import track

    pairs = pair_references(images, reference=reference, references=references)
    if reference is not None and not reference.is_file():
        raise ConfigError(f"no reference picture {reference}")
    inspector = Inspector(checkpoint or default_checkpoint(), device=device, calibration=calibration)
    say(f"model {inspector.metadata.name} {inspector.metadata.version} on {inspector.device}")
    answers = inspect_files(inspector, pairs, out=out, min_score=min_score, recipe=recipe, camera=camera)
    if len(pairs) > 1:
        answers = track(answers, total=len(pairs), label="inspecting")
    reports: list[dict[str, Any]] = []
    written: list[Path] = []
    for answer in answers:
        reports.append(answer.report)
        written += answer.written
        if as_json:
            print(json.dumps(answer.report, allow_nan=False), flush=True)
    if not as_json:
        console = stdout()
        console.print(verdict_table(reports))
        if len(reports) == 1 and reports[0]["defects"]:
            console.print(defect_table(reports[0]))
    if remark := calibration_remark(reports):
        say(remark)
    count = "1 file" if len(written) == 1 else f"{len(written)} files"
    say(f"wrote {count} to {out}{os.sep}: {_name_some(written)}")
    raise typer.Exit(max(EXIT_CODES[report["verdict"]] for report in reports))


@app.command()
def train(
    config: Annotated[Path, typer.Option(help="Training run as YAML, as configs/deeppcb_nano.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change one setting, as optim.lr=3e-4. May be repeated."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set. Default: data.root of the YAML.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run: state, log, checkpoint. Default: runs/NAME.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--fresh", help="Go on with an interrupted run in that folder, or start again."
        ),
    ] = True,
) -> None:
    """Train a checkpoint. Stopped at any moment, the same command goes on where it was."""
    from inspect_vit.config import load_config
    from training.config import TrainConfig
    from training.fit import fit

    named = [] if data is None else [f"data.root={json.dumps(str(data.absolute()))}"]
    run = load_config(config, TrainConfig, [*named, *(overrides or [])])
    folder = out or Path("runs") / run.name
    try:
        checkpoint = fit(run, out=folder, fresh=not resume)
    except KeyboardInterrupt:
        say(f"stopped; the same command goes on from the last state saved in {folder}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    stdout().print(f"wrote {checkpoint}", soft_wrap=True)


@app.command()
def model_info(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="Model file. Default: the one shipped with the package.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML of a model or a training run, to describe instead of a checkpoint."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Say what a model is: parameters, GFLOPs, levels, thresholds, how it was trained."""
    from inspect_vit.checkpoint import default_checkpoint
    from inspect_vit.model_info import describe_checkpoint, describe_config

    if checkpoint is not None and config is not None:
        raise ConfigError("name a checkpoint or --config, not both")
    info = describe_config(config) if config else describe_checkpoint(checkpoint or default_checkpoint())
    if as_json:
        print(json.dumps(info, indent=2, allow_nan=False))
        return
    for table in model_tables(info):
        stdout().print(table)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command; a caller's mistake is one line on stderr and exit code 2, a bug a traceback and 70.

    Python's own exit code for a crash is 1, which here would say that a board failed.
    """
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="inspect-vit")
    except InspectionError as error:
        say(f"error: {error}")
    except OSError as error:
        say(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except Exception:
        traceback.print_exc()
        sys.exit(EXIT_BUG)
    sys.exit(EXIT_USAGE)


def _name_some(paths: Sequence[Path]) -> str:
    names = [path.name for path in paths[:MAX_NAMED]]
    return ", ".join(names) + (", ..." if len(paths) > MAX_NAMED else "")


if __name__ == "__main__":
    main()
