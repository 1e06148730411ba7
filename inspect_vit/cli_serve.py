"""`inspect-vit serve`: the service, alone or with a sample board inspected on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from inspect_vit.console import defect_table, say, stdout, verdict_table
from inspect_vit.errors import ConfigError

CheckpointOption = Annotated[
    Path | None,
    typer.Option(help="Model file (.safetensors). Default: the one shipped with the package."),
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(help="File of inspect-vit calibrate: thresholds and claims. Default: the checkpoint's."),
]
CameraOption = Annotated[
    str | None,
    typer.Option(help="Camera and lighting of the pictures, as the calibration names it. Default: none."),
]


def serve(
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Model file (.safetensors), which goes into production, unless another was promoted over it "
            "since. Default: the version in production, at the first start the one shipped."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="IP address to listen on; 0.0.0.0 opens the service to the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port to listen on.")] = 3000,
    calibration: CalibrationOption = None,
    camera: CameraOption = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            help="Folder of sample boards: inspect the first pair (X_test.png with X_temp.png) once ready, "
            "then keep serving. Default: none. Takes --without-keys."
        ),
    ] = None,
    without_keys: Annotated[
        bool,
        typer.Option(
            "--without-keys",
            help="Ask nobody for a key and answer this machine alone. Default: as INSPECT_VIT_KEYS says.",
        ),
    ] = False,
) -> None:
    """Run the inspection service and the QA station until Ctrl-C."""
    from serving import run

    if sample is None:
        run.serve(
            checkpoint,
            host=host,
            port=port,
            without_keys=without_keys,
            calibration=calibration,
            camera=camera,
        )
    raise typer.Exit(
        _serve_with_sample(
            sample,
            checkpoint,
            host=host,
            port=port,
            without_keys=without_keys,
            calibration=calibration,
            camera=camera,
        )
    )


def _serve_with_sample(folder: Path, checkpoint: Path | None, **settings: Any) -> int:
    """Start the server as a child, inspect a sample on it, and stay until it ends; returns its exit code.

    settings: as `prepare` takes them.
    """
    from serving.config import from_environment
    from serving.run import prepare, stop, wait_until_ready
    from serving.sample import find_sample, inspect_sample

    find_sample(folder)
    server = prepare(checkpoint, samples=folder, **settings)
    if server.environ.get("INSPECT_VIT_KEYS") != "off":
        raise ConfigError(
            "--sample posts a board as a first visitor would, without a key: add --without-keys, or leave "
            "--sample away and log in at the station"
        )
    say(server.notice)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    # A job that a shell started in the background ignores SIGINT; whoever sends it one means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A session of its own: Ctrl-C reaches this process alone, which then ends the server in order.
    process = subprocess.Popen(server.argv, env=server.environ, start_new_session=True)
    try:
        wait_until_ready(process, server.url)
        answer = inspect_sample(server.url, folder, out=from_environment(os.environ).home_dir / "sample")
        console = stdout()
        console.print(f"\nsample {answer.image} with golden reference {answer.reference}", markup=False)
        console.print(verdict_table([answer.report]))
        console.print(defect_table(answer.report))
        print(f"overlay     {answer.overlay}")
        print(f"QA station  {server.url}/station")
        print("Ctrl-C stops the service", flush=True)
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        stop(process)
