"""What the service does under load: images/s, waiting times, errors, memory and file descriptors.

    python benchmarks/load.py [--clients 1 2 4 8 16 32 64] [--seconds 20] [--port N]
    python benchmarks/load.py --soak 30 [--clients 2]

A real server on the loopback, on the machine that its clients are on (Linux only: it reads /proc). Each
client posts one 640x640 board after the other and waits for the answer, as a station of a line does: without
a golden reference, with one, and by a recipe that holds it. No two boards have the same bytes or serial. A
client that is answered 503 waits the seconds of Retry-After. Times are of the boards answered 200; memory and
descriptors are the worker's.

A soak posts by all three in turn, looks at what it posted as the station does, and prints a line a minute.
Memory counts as flat when it grows by at most 2 MB, descriptors by at most 1, per 1000 inspections, after the
first 11 minutes: the framework keeps some 4 kB of every request until its time limit of 10 minutes is over,
answered or not, so memory rises for so long at any steady rate. The exit code is 0 when nothing failed and,
of a soak, both are flat.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from scipy.stats import theilslopes

from serving.run import prepare, stop, wait_until_ready

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "load"
CASES = ("without reference", "with reference", "by recipe")
MAX_CLIENTS, LEAST_SOAK_MINUTES, MAX_SOAK_MINUTES = 64, 13, 24 * 60
TRANSPORT = 0  # counted as status: no answer at all
FLAT_MB, FLAT_DESCRIPTORS = 2.0, 1.0
"""Growth per 1000 inspections that still counts as flat. A board every 5 s is 17280 a day: 35 MB."""
WARM_UP_S = 660.0
"""`service.REQUEST_TIMEOUT_S` and a minute; caches fill and connections come into being meanwhile."""
SAMPLE_S = 5.0
LOOK_EVERY = 4
"""In a soak, after so many boards a client looks at one."""
VIEWS = ("", "/overlay", "/defect_map?style=colour", "/attention?level=16", "/gate", "/image?format=png")


@dataclass(frozen=True)
class Usage:
    """The server after so many seconds and inspections."""

    seconds: float
    num_inspections: int
    memory_mb: float
    num_descriptors: int


@dataclass
class Tally:
    """What the clients saw; they share it."""

    seconds: list[float] = field(default_factory=list)
    """Request to answer, of the boards answered 200."""
    statuses: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, client: httpx.Client, method: str, path: str, **body: Any) -> httpx.Response | None:
        """Send and count a request; None when there was no answer."""
        start = time.perf_counter()
        answer = None
        with suppress(httpx.TransportError):
            answer = client.request(method, path, **body)
        with self.lock:
            self.statuses[TRANSPORT if answer is None else answer.status_code] += 1
            if method == "POST" and answer is not None and answer.status_code == 200:
                self.seconds.append(time.perf_counter() - start)
        return answer

    @property
    def num_failed(self) -> int:
        """Requests without an answer, or answered neither 200 nor "come again later"."""
        return sum(self.statuses.values()) - self.statuses[200] - self.statuses[503]


class Server:
    """A server in a folder of its own, with a recipe, and ways to look at its worker."""

    def __init__(self, home: Path, port: int) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
        settings = {"INSPECT_VIT_HOME": str(home), "INSPECT_VIT_KEYS": "off"}
        command = prepare(port=port, environ={**inherited, **settings})
        self.url, self.log = command.url, home / "server.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command.argv, env=command.environ, stdout=log, stderr=log, start_new_session=True
            )
        try:
            wait_until_ready(self.process, self.url, timeout_s=600.0)
            supervisor = self.process.pid
            children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
            self.worker = Path("/proc") / children[0]
            self.board = (ROOT / "data_samples/board_01_test.png").read_bytes()
            self.golden = (ROOT / "data_samples/board_01_temp.png").read_bytes()
            with self.client() as client:
                put = client.put(f"/v1/recipes/{RECIPE}", files={"reference": ("golden.png", self.golden)})
                put.raise_for_status()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        stop(self.process)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120.0)

    def usage(self, num_inspections: int, seconds: float = 0.0) -> Usage:
        (resident,) = (
            int(line.split()[1])
            for line in (self.worker / "status").read_text().splitlines()
            if line.startswith("VmRSS:")
        )
        return Usage(seconds, num_inspections, resident / 1024, len(os.listdir(self.worker / "fd")))

    def post(self, client: httpx.Client, case: str, tally: Tally) -> httpx.Response | None:
        """Post one more board; None when there was no answer."""
        files = {"image": self.board + os.urandom(8)}
        data = {"serial": os.urandom(8).hex()}
        if case == "with reference":
            files["reference"] = self.golden
        elif case == "by recipe":
            data["recipe"] = RECIPE
        return tally.ask(client, "POST", "/v1/inspect", files=files, data=data)


@contextmanager
def clients(server: Server, cases: Sequence[str], number: int, tally: Tally, *, look: bool) -> Iterator[None]:
    """So many clients post, each by the cases in turn, until this is left."""
    over = threading.Event()

    def work(first: int) -> None:
        with server.client() as client:
            for turn, case in enumerate(itertools.islice(itertools.cycle(cases), first, None)):
                answer = server.post(client, case, tally)
                status = TRANSPORT if answer is None else answer.status_code
                if answer is not None and status == 503:
                    over.wait(float(answer.headers["retry-after"]))
                elif answer is not None and status == 200 and look and turn % LOOK_EVERY == 0:
                    view = VIEWS[turn // LOOK_EVERY % len(VIEWS)]
                    tally.ask(client, "GET", f"/v1/inspections/{answer.json()['id']}{view}")
                    tally.ask(client, "GET", "/v1/inspections?limit=20")
                    tally.ask(client, "GET", "/metrics")
                elif status == TRANSPORT:
                    over.wait(0.1)
                if over.is_set():
                    return

    threads = [threading.Thread(target=work, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def slope(samples: Sequence[Usage], name: str) -> tuple[float, float, float]:
    """Growth of a figure per 1000 inspections, and its 95 % interval.

    The median of all pairwise slopes (Theil and Sen): single peaks do not move it. The interval takes samples
    for independent, so it is a little narrow.
    """
    done = np.array([each.num_inspections for each in samples]) / 1000
    figures = np.array([getattr(each, name) for each in samples], np.float64)
    found = theilslopes(figures, done)
    return float(found.slope), float(found.low_slope), float(found.high_slope)


def judge(samples: Sequence[Usage]) -> tuple[bool, str]:
    """Whether memory and descriptors are flat after the warm-up, and the figures in words.

    Raises:
        ValueError: fewer than 10 samples are left, which say nothing.
    """
    kept = [each for each in samples if each.seconds >= WARM_UP_S]
    if len(kept) < 10 or kept[0].num_inspections == kept[-1].num_inspections:
        raise ValueError(f"{len(kept)} samples after the warm-up, wanted at least 10; soak for longer")
    lines, is_flat = [], True
    for name, unit, limit in (
        ("memory_mb", "MB", FLAT_MB),
        ("num_descriptors", "descriptors", FLAT_DESCRIPTORS),
    ):
        middle, low, high = slope(kept, name)
        fits = middle <= limit
        is_flat = is_flat and fits
        lines.append(
            f"{unit} per 1000 inspections: {middle:+.2f} (95 % interval {low:+.2f} to {high:+.2f}), "
            f"from {getattr(kept[0], name):.0f} to {getattr(kept[-1], name):.0f}; limit {limit:g}: "
            f"{'flat' if fits else 'NOT FLAT'}"
        )
    return is_flat, "\n".join(lines)


def load_table(server: Server, numbers: Sequence[int], seconds: float) -> int:
    """Print a row for each case and number of clients. Returns how many requests failed."""
    columns = ("boards", "clients", "answered 200", "images/s", "p50 ms", "p95 ms", "p99 ms", "503", "failed")
    columns += ("MB", "descriptors")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    failed = done = 0
    for case in CASES:
        with server.client() as client:
            server.post(client, case, Tally())
        for number in numbers:
            tally = Tally()
            start = time.perf_counter()
            with clients(server, [case], number, tally, look=False):
                time.sleep(seconds)
            # The last answers come after the time is over: it is they that end the row.
            spent = time.perf_counter() - start
            done += len(tally.seconds)
            failed += tally.num_failed
            quantiles = np.percentile(tally.seconds or [np.nan], (50, 95, 99)) * 1e3
            usage = server.usage(done)
            print(
                f"| {case} | {number} | {len(tally.seconds)} | {len(tally.seconds) / spent:.2f} | "
                f"{' | '.join(f'{each:.0f}' for each in quantiles)} | {tally.statuses[503]} | "
                f"{tally.num_failed} | {usage.memory_mb:.0f} | {usage.num_descriptors} |",
                flush=True,
            )
    return failed


def soak(server: Server, number: int, minutes: float) -> bool:
    """Print a line a minute and the slopes. Returns whether all is flat and nothing failed."""
    tally, samples = Tally(), []
    start = time.monotonic()
    next_line = 60.0
    with clients(server, CASES, number, tally, look=True):
        while (passed := time.monotonic() - start) < 60.0 * minutes:
            time.sleep(min(SAMPLE_S, max(0.0, 60.0 * minutes - passed)))
            samples.append(server.usage(len(tally.seconds), time.monotonic() - start))
            if time.monotonic() - start >= next_line:
                print(
                    f"minute {next_line / 60:.0f}: {samples[-1].num_inspections} inspections, "
                    f"{samples[-1].memory_mb:.0f} MB, {samples[-1].num_descriptors} descriptors, "
                    f"{tally.statuses[503]} x 503, {tally.num_failed} failed",
                    flush=True,
                )
                next_line += 60.0
    is_flat, words = judge(samples)
    print(words)
    return is_flat and tally.num_failed == 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--clients", type=int, nargs="+", help="1 to 64 at a time; default 1 2 4 ... 64, soak: 2"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row of the table")
    parser.add_argument(
        "--soak", type=float, metavar="MINUTES", help="soak for so long in place of the table"
    )
    parser.add_argument("--port", type=int, default=3998, help="of the server")
    options = parser.parse_args()
    numbers = options.clients or ([2] if options.soak else [1, 2, 4, 8, 16, 32, 64])
    if not all(1 <= number <= MAX_CLIENTS for number in numbers) or (options.soak and len(numbers) > 1):
        parser.error(f"--clients: {numbers}, wanted numbers from 1 to {MAX_CLIENTS}, for a soak one")
    if options.soak is not None and not LEAST_SOAK_MINUTES <= options.soak <= MAX_SOAK_MINUTES:
        parser.error(f"--soak: {options.soak:g}, wanted {LEAST_SOAK_MINUTES} to {MAX_SOAK_MINUTES} minutes")
    # A server that is interrupted must still be stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as home:
        server = Server(Path(home), options.port)
        try:
            if options.soak:
                is_fine = soak(server, numbers[0], options.soak)
            else:
                is_fine = load_table(server, numbers, options.seconds) == 0
        finally:
            server.close()
    sys.exit(0 if is_fine else 1)


if __name__ == "__main__":
    main()
