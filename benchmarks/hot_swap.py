"""Swap the model of a running service again and again while boards are posted, and count what is lost.

    python benchmarks/hot_swap.py --swaps 10 --clients 3 --servers 2

Starts the service on a home of its own, promotes and rolls back between two versions (the shipped one and
one with other weights), and prints a table: swaps, boards, failed boards, longest wait, memory of the worker
before and after. Memory is the resident set, read from /proc, after a first swap to and fro: both versions
were loaded once by then. With --loaded 1 each swap loads from disk and lets the other go.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import torch

from inspect_vit.checkpoint import default_checkpoint, load_checkpoint, save_checkpoint
from serving.config import ServingConfig
from serving.promotion import promote, rollback
from serving.registry import add_version, production
from serving.roles import ANYONE
from serving.run import prepare, wait_until_ready
from serving.store import Store

BOARD = Path(__file__).parents[1] / "data_samples"
SWAP_TIMEOUT_S = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--swaps", type=int, default=10)
    parser.add_argument("--clients", type=int, default=3, help="of each server")
    parser.add_argument("--boards", type=int, default=5, help="inspected by each server between two swaps")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--loaded", type=int, default=3, help="INSPECT_VIT_LOADED_MODELS")
    parser.add_argument("--port", type=int, default=0, help="of the first server; 0: any that is free")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="hot-swap-"))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        urls = [
            _start(home, arguments.port + n if arguments.port else _free_port(), arguments.loaded, processes)
            for n in range(arguments.servers)
        ]
        with closing(Store(ServingConfig(home=home))) as store:
            _measure(store, home, urls, processes, arguments)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)
        shutil.rmtree(home, ignore_errors=True)


def _measure(
    store: Store,
    home: Path,
    urls: list[str],
    processes: list[subprocess.Popen[bytes]],
    arguments: argparse.Namespace,
) -> None:
    first = production(store.engine)
    second = add_version(store.engine, home, _other(home), parent=first, actor=ANYONE).version
    board = sorted(BOARD.glob("*_test.png"))[0]
    data, golden = board.read_bytes(), board.with_name(board.name.replace("_test", "_temp")).read_bytes()
    answers: list[tuple[int, str, float]] = []
    stop = threading.Event()

    def post(url: str) -> None:
        with httpx.Client(base_url=url, timeout=120.0) as client:
            while not stop.is_set():
                began = time.perf_counter()
                answer = client.post("/v1/inspect", files={"image": data, "reference": golden})
                version = answer.json().get("model", {}).get("version", "")
                answers.append((answer.status_code, version, time.perf_counter() - began))

    def swap() -> None:
        now = production(store.engine)
        if now == first:
            promote(
                *(store.engine, home, second),
                recipe=None,
                actor=ANYONE,
                gate=None,
                override_reason="benchmark",
            )
        else:
            rollback(store.engine, home, second, recipe=None, actor=ANYONE, reason="benchmark")
        wanted = second if now == first else first
        for url in urls:
            _wait_for(url, wanted)
        seen, enough = len(answers), arguments.boards * len(urls)
        while sum(version == wanted for _, version, _ in answers[seen:]) < enough:
            time.sleep(0.05)

    threads = [threading.Thread(target=post, args=(url,)) for url in urls for _ in range(arguments.clients)]
    for thread in threads:
        thread.start()
    swap()
    swap()
    before = [_resident_mb(process) for process in processes]
    lowest = len(answers)
    for _ in range(arguments.swaps):
        swap()
    after = [_resident_mb(process) for process in processes]
    stop.set()
    for thread in threads:
        thread.join()
    told = answers[lowest:]
    failed = sum(status != 200 for status, _, _ in answers)
    versions = {version: sum(each == version for _, each, _ in told) for version in (first, second)}
    print(
        "| servers | kept loaded | swaps | boards | failed | by version | longest s | MB before | MB after |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    cells: list[object] = [len(urls), arguments.loaded, arguments.swaps, len(answers), failed]
    cells += [" / ".join(map(str, versions.values())), f"{max(seconds for *_, seconds in told):.1f}"]
    cells += [" + ".join(f"{size:.0f}" for size in sizes) for sizes in (before, after)]
    print(f"| {' | '.join(map(str, cells))} |")


def _start(home: Path, port: int, loaded: int, processes: list[subprocess.Popen[bytes]]) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
    settings = {"INSPECT_VIT_HOME": str(home), "INSPECT_VIT_KEYS": "off"}
    settings["INSPECT_VIT_LOADED_MODELS"] = str(loaded)
    command = prepare(port=port, environ={**inherited, **settings})
    with (home / "server.log").open("ab") as log:
        process = subprocess.Popen(command.argv, env=command.environ, stdout=log, stderr=log)
    processes.append(process)
    wait_until_ready(process, command.url, timeout_s=600.0)
    return command.url


def _other(home: Path) -> Path:
    """The shipped model with other weights: another version of the same size."""
    model, metadata = load_checkpoint(default_checkpoint())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.01)
    path = home / "other.safetensors"
    save_checkpoint(path, model, name="other", thresholds=metadata.thresholds, training={})
    return path


def _wait_for(url: str, version: str) -> None:
    deadline = time.monotonic() + SWAP_TIMEOUT_S
    while time.monotonic() < deadline:
        text = httpx.get(f"{url}/metrics").text
        told = [line for line in text.splitlines() if line.startswith("inspect_vit_model_info{")]
        if any(version in line and line.endswith(" 1.0") for line in told):
            return
        time.sleep(0.05)
    raise SystemExit(f"{url} did not swap to {version} in {SWAP_TIMEOUT_S:g} s")


def _resident_mb(process: subprocess.Popen[bytes]) -> float:
    """Of the worker: the supervisor holds no model."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    lines = Path(f"/proc/{children[0]}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1e3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
