"""Time an inspection of a 640x640 pair on a running service: the whole request, and the model in it.

    python benchmarks/request.py

Two servers take turns, one with the C allocator's defaults, one that keeps freed memory, so that ratios hold
whatever else the machine does; times are medians, memory is the worker's resident set at the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from inspect_vit.allocator import KEEP_FREED_MEMORY
from serving.run import prepare, wait_until_ready

ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident_mb(group: int) -> float:
    """Largest resident set of the processes in a group, MB."""
    listed = subprocess.run(["ps", "-eo", "pgid,rss"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return max(int(rss) for pgid, rss in rows if int(pgid) == group) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40, help="timed requests to each server")
    options = parser.parse_args()
    samples = ROOT / "data_samples"
    files = {
        "image": (samples / "board_01_test.png").read_bytes(),
        "reference": (samples / "board_01_temp.png").read_bytes(),
    }
    servers: dict[str, tuple[subprocess.Popen[bytes], httpx.Client]] = {}
    with tempfile.TemporaryDirectory() as home:
        try:
            for name in ("allocator's defaults", "freed memory kept"):
                environ = os.environ | {
                    "INSPECT_VIT_HOME": f"{home}/{len(servers)}",
                    "INSPECT_VIT_KEYS": "off",
                }
                command = prepare(port=free_port(), environ=environ)
                if not servers:
                    kept = set(KEEP_FREED_MEMORY)
                    environ = {key: value for key, value in command.environ.items() if key not in kept}
                else:
                    environ = command.environ
                process = subprocess.Popen(command.argv, env=environ, start_new_session=True)
                servers[name] = process, httpx.Client(base_url=command.url, timeout=60)
                wait_until_ready(process, command.url)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
            for turn in range(options.rounds + 3):
                for name, (_, client) in servers.items():
                    start = time.perf_counter()
                    report = client.post("/v1/inspect", files=files).raise_for_status().json()
                    spent = 1e3 * (time.perf_counter() - start)
                    if turn >= 3:
                        times[name].append((spent, report["timings_ms"]["model"]))
            print("| server | request ms | model ms | resident MB |\n|---|---|---|---|")
            for name, (process, _) in servers.items():
                request, model = (statistics.median(column) for column in zip(*times[name], strict=True))
                print(f"| {name} | {request:.0f} | {model:.0f} | {resident_mb(process.pid):.0f} |")
        finally:
            for process, _ in servers.values():
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()


if __name__ == "__main__":
    main()
