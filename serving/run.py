"""Start the server: check what would make it fail later, then hand over to `bentoml serve`."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from inspect_vit.allocator import KEEP_FREED_MEMORY
from inspect_vit.calibration import Calibration, load_calibration
from inspect_vit.errors import ConfigError
from serving.config import ServingConfig, from_environment, to_environment

SERVICE = "serving.service:InspectionService"
ROOT = Path(__file__).parents[1]
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 3000
GRACE_S = 10
"""Requests still running this long after Ctrl-C are cut off."""
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 20.0
NO_KEY_YET = (
    "There is no key yet, so every request is answered 401. Create one, for yourself first:\n"
    '    inspect-vit keys create --role admin --name "YOUR NAME"\n'
    "or, to be open to this machine alone, start with --without-keys."
)
WITHOUT_KEYS = "Without keys: every program and user on this machine may do everything here."


@dataclass(frozen=True)
class ServerCommand:
    """A checked command line that serves, with its environment."""

    argv: list[str]
    environ: dict[str, str]
    url: str
    notice: str
    """What the one who starts it should know about keys; empty: nothing."""


def prepare(
    checkpoint: str | Path | None = None,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    samples: str | Path | None = None,
    without_keys: bool = False,
    calibration: str | Path | None = None,
    camera: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ServerCommand:
    """Check settings, checkpoint, device, home folder, database, address and port.

    Args:
        environ: where the INSPECT_VIT_* settings are read; the arguments win over them.

    Raises:
        ConfigError, CheckpointError: what would not work, and what to do.
    """
    from inspect_vit.devices import resolve_device
    from serving.command_line import in_plain_words
    from serving.keys import has_keys
    from serving.model_start import start_with
    from serving.store import Store

    config = from_environment(environ)
    chosen = checkpoint or config.checkpoint
    chosen = None if chosen is None else Path(chosen).expanduser().absolute()
    update: dict[str, object] = {"home": config.home_dir, "checkpoint": chosen}
    if samples is not None:
        update["samples"] = Path(samples).expanduser().absolute()
    if without_keys:
        update["keys"] = "off"
    if named := calibration or config.calibration:
        update["calibration"] = Path(named).expanduser().absolute()
    if camera is not None:
        update["camera"] = camera
    config = ServingConfig(**{**config.model_dump(), **update})
    address = _address(host)
    if config.keys == "off" and not ipaddress.ip_address(address).is_loopback:
        raise ConfigError(
            f"without keys the service would be open to everyone who reaches {address}: leave --without-keys "
            "(INSPECT_VIT_KEYS=off) away, or listen on 127.0.0.1"
        )
    promised = None if config.calibration is None else load_calibration(config.calibration)
    resolve_device(config.device)
    _check_port(address, port)
    with closing(Store(config)) as store, in_plain_words():
        notice = "" if has_keys(store.engine) else NO_KEY_YET
        # Last of all: another server on this home follows what goes into production here.
        version = start_with(store.engine, config.home_dir, chosen)
    _say_what_is_served(promised, version, chosen)
    # Of this server alone: a second one in the same folder would remove the files of the first.
    bentoml_home = config.home_dir / "bentoml" / f"{address.replace(':', '_')}-{port}"
    bentoml_home.mkdir(parents=True, exist_ok=True)
    return ServerCommand(
        argv=[
            *(sys.executable, "-m", "bentoml", "serve", SERVICE, "--working-dir", str(ROOT)),
            *("--host", address, "--port", str(port), "--timeout-graceful-shutdown", str(GRACE_S)),
        ],
        environ={
            **KEEP_FREED_MEMORY,
            **environ,
            **to_environment(config),
            "BENTOML_HOME": str(bentoml_home),
            "BENTOML_DO_NOT_TRACK": "true",
        },
        url=f"http://{f'[{address}]' if ':' in address else address}:{port}",
        notice=WITHOUT_KEYS if config.keys == "off" else notice,
    )


def serve(
    checkpoint: str | Path | None = None,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    samples: str | Path | None = None,
    without_keys: bool = False,
    calibration: str | Path | None = None,
    camera: str | None = None,
) -> NoReturn:
    """Become the server; Ctrl-C or SIGTERM ends it. Raises what `prepare` raises."""
    server = prepare(
        checkpoint,
        host=host,
        port=port,
        samples=samples,
        without_keys=without_keys,
        calibration=calibration,
        camera=camera,
    )
    if server.notice:
        print(server.notice, file=sys.stderr)
    print(f"QA station: {server.url}/station", file=sys.stderr, flush=True)
    os.execve(server.argv[0], server.argv, server.environ)


def wait_until_ready(
    process: subprocess.Popen[bytes], url: str, *, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait for a server that was started with `ServerCommand.argv`.

    Raises:
        ConfigError: it ended, or does not answer in time.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ConfigError(f"the server ended with exit code {process.returncode}; its log says why")
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5.0) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise ConfigError(f"the server at {url} is not ready after {timeout_s:.0f} s; its log says why")


def stop(process: subprocess.Popen[bytes], *, timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Ask a server that leads a session of its own to end; after the timeout kill it with its workers."""
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _say_what_is_served(calibration: Calibration | None, version: str, checkpoint: Path | None) -> None:
    """Tell what may not be expected: a void calibration, a checkpoint that is not used."""
    from inspect_vit.checkpoint import read_metadata

    told = []
    if calibration is not None and calibration.model_version != version:
        told.append(
            f"the calibration is void: it is for model version {calibration.model_version}, "
            f"{version} is served"
        )
    if checkpoint is not None and (named := read_metadata(checkpoint).version) != version:
        told.append(
            f"{checkpoint} has model version {named}; {version} was promoted over it and stays in "
            f"production: inspect-vit models rollback {version} goes back"
        )
    for line in told:
        print(line, file=sys.stderr, flush=True)


def _address(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host))
    except ValueError as error:
        raise ConfigError(
            f"host {host!r} is not an IP address; 127.0.0.1 is this machine alone, 0.0.0.0 all networks"
        ) from error


def _check_port(address: str, port: int) -> None:
    if not 1 <= port <= 65535:
        raise ConfigError(f"port {port} is outside 1..65535")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {address}:{port}: {error.strerror}; stop the server that uses it "
                "or choose another port with --port"
            ) from error
