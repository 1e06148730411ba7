"""`inspect-vit doctor`: is the attention of a checkpoint healthy. Heavy parts are imported where they are
used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from inspect_vit.console import say, stdout

EXIT_ILL = 1


def doctor(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="Model file. Default: the one shipped with the package.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of board pictures, X_test with its reference X_temp; four are looked at. "
            "Default: the samples of the checkout, else drawn boards."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for doctor.html and doctor.json; made if missing.")
    ] = Path("doctor"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    device: Annotated[
        str,
        typer.Option(help="Where the model runs: auto (CUDA if there is one, else CPU), cpu, cuda, cuda:N."),
    ] = "auto",
) -> None:
    """Check a model's attention, with a remedy for each fault. Exit code: 0 healthy, 1 ill, 2 wrong usage."""
    from inspect_vit.checkpoint import default_checkpoint, load_checkpoint
    from inspect_vit.devices import resolve_device
    from inspect_vit.doctor import examine
    from inspect_vit.doctor_boards import load_boards
    from inspect_vit.doctor_findings import Health
    from inspect_vit.doctor_page import write_page
    from inspect_vit.doctor_report import counted, report_json, tables

    chosen = resolve_device(device)
    model, metadata = load_checkpoint(checkpoint or default_checkpoint(), device=chosen)
    boards, source = load_boards(data, metadata.model, device=chosen)
    say(f"model {metadata.name} {metadata.version} on {chosen}; {source}")
    examination = examine(model, boards)
    report = report_json(examination, name=metadata.name, version=metadata.version, boards=source)
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / "doctor.json").write_text(text, encoding="utf-8")
    page = out / "doctor.html"
    write_page(page, model, examination, name=metadata.name, version=metadata.version, boards=source)
    if as_json:
        print(text, end="")
    else:
        console = stdout()
        for table in tables(examination):
            console.print(table)
        console.print(f"{examination.health}: {counted(examination)}", markup=False)
    say(f"wrote {page} and {out / 'doctor.json'}")
    raise typer.Exit(EXIT_ILL if examination.health is Health.ILL else 0)
