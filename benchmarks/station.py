"""How long a board takes from the click to its first sight at the QA station, and how it follows the hand.

    python benchmarks/station.py [--side 6400] [--port N]

A real server on the loopback and a real browser (Debian's chromium) on the same machine. The boards of
data_samples/, and one of SIDE x SIDE px made of their tiles with one faulty tile in it, are inspected against
their references. Then the server is started anew, so that nothing is kept in its memory. First sight: the
calls are listed, the board lies at the first call and its close-up beside the reference is drawn, all of it
visible. Each board is opened once before it was ever looked at and once more later. Panning: the pointer
drags the board for two seconds; frames are those that the browser drew. A picture of the large board's first
sight is written to --picture.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import cv2
import httpx
import numpy as np
from playwright.sync_api import Page, sync_playwright

from serving.run import prepare, stop, wait_until_ready

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_PX = 640
SETTLE_MS, DRAG_MS = 1500, 2000
OPEN = """(id) => new Promise((done) => {
    const start = performance.now();
    document.querySelector(`ol.rows a[href*="${id}"]`).click();
    const look = () => {
        const close = document.querySelector(".detail .crops img");
        const isSeen = close && close.complete && close.naturalWidth && document.querySelector(".callrow");
        const spent = performance.now() - start;
        if (isSeen || spent > 60000) done(isSeen ? spent : NaN);
        else requestAnimationFrame(look);
    };
    look();
})"""
COUNT = """() => {
    window.frames_ms = [];
    let last = performance.now();
    const note = () => {
        const now = performance.now();
        window.frames_ms.push(now - last);
        last = now;
        requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
}"""


@contextmanager
def serving(home: Path, port: int, max_megapixels: float) -> Iterator[httpx.Client]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
    settings = {
        "INSPECT_VIT_HOME": str(home),
        "INSPECT_VIT_KEYS": "off",
        "INSPECT_VIT_MAX_MEGAPIXELS": f"{max_megapixels:g}",
        "INSPECT_VIT_MAX_UPLOAD_MB": "1000",
        "INSPECT_VIT_DEADLINE_S": "600",
    }
    command = prepare(port=port, environ={**inherited, **settings})
    with (home / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command.argv, env=command.environ, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until_ready(process, command.url, timeout_s=600.0)
        with httpx.Client(base_url=command.url, timeout=600.0) as client:
            yield client
    finally:
        stop(process)


def large_pair(side: int) -> tuple[bytes, bytes]:
    """PNG of a board of side x side px and of its reference: sample tiles, turned at random, one faulty."""
    rng = np.random.default_rng(0)
    across = -(-side // SAMPLE_PX)
    goods, faulty = [], None
    for number in range(1, 7):
        good = cv2.imread(str(ROOT / f"data_samples/board_{number:02}_temp.png"), cv2.IMREAD_GRAYSCALE)
        assert good is not None
        goods.append(good[:SAMPLE_PX, :SAMPLE_PX])
    faulty = cv2.imread(str(ROOT / "data_samples/board_01_test.png"), cv2.IMREAD_GRAYSCALE)
    assert faulty is not None
    golden = np.zeros((across * SAMPLE_PX, across * SAMPLE_PX), np.uint8)
    board = golden.copy()
    place = (across // 2, across // 3)
    for row in range(across):
        for column in range(across):
            view = np.s_[
                row * SAMPLE_PX : (row + 1) * SAMPLE_PX, column * SAMPLE_PX : (column + 1) * SAMPLE_PX
            ]
            turn = int(rng.integers(4))
            number = 0 if (row, column) == place else int(rng.integers(len(goods)))
            golden[view] = np.rot90(goods[number], turn)
            board[view] = np.rot90(faulty if (row, column) == place else goods[number], turn)
    encoded = (cv2.imencode(".png", picture[:side, :side])[1].tobytes() for picture in (board, golden))
    first, second = encoded
    return first, second


def post(client: httpx.Client, serial: str, image: bytes, reference: bytes) -> str:
    files = {"image": image, "reference": reference}
    answer = client.post("/v1/inspect", files=files, data={"serial": serial}).raise_for_status().json()
    return str(answer["id"])


def first_sight_ms(page: Page, board: str) -> float:
    page.goto(page.url.split("#")[0] + "#/queue")
    page.wait_for_selector(f'ol.rows a[href*="{board}"]')
    page.wait_for_timeout(SETTLE_MS)
    return float(page.evaluate(OPEN, board))


def frame_times_ms(page: Page) -> list[float]:
    """Between the frames of two seconds in which the pointer drags the board to and fro."""
    box = page.locator(".stage").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT)
    start = page.evaluate("performance.now()")
    step = 0
    while page.evaluate("performance.now()") - start < DRAG_MS:
        step += 1
        page.mouse.move(x - 3 * (step % 60), y + 2 * (step % 40))
    page.mouse.up()
    return [float(spent) for spent in page.evaluate("window.frames_ms")]


def shown(name: str, times: Mapping[str, list[float]], frames: list[float]) -> str:
    cells = [f"{statistics.median(ms):.0f} ({max(ms):.0f})" for ms in times.values()]
    rate = 1000.0 * len(frames) / sum(frames)
    return f"| {name} | {' | '.join(cells)} | {rate:.0f} | {max(frames):.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=6400, help="px of the large board")
    parser.add_argument("--port", type=int, default=3300)
    parser.add_argument("--picture", type=Path, default=None)
    options = parser.parse_args()
    limit = max(64.0, options.side**2 / 1e6 + 1)
    groups: dict[str, list[str]] = {"640 x 640 px": [], f"{options.side} x {options.side} px": []}
    small, large = groups.values()
    with tempfile.TemporaryDirectory(prefix="station-") as folder:
        home = Path(folder)
        with serving(home, options.port, limit) as client:
            for number in range(1, 6):
                pair = [
                    (ROOT / f"data_samples/board_{number:02}_{kind}.png").read_bytes()
                    for kind in ("test", "temp")
                ]
                small.append(post(client, f"S-{number}", pair[0], pair[1]))
            large.append(post(client, "L-1", *large_pair(options.side)))
        print("| board | first sight: median (longest), ms | again, ms | frames/s | longest frame, ms |")
        print("|---|---|---|---|---|")
        for name, boards in groups.items():
            with serving(home, options.port, limit) as client, sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-dev-shm-usage"]
                )
                page = browser.new_page(viewport={"width": 1366, "height": 768})
                page.goto(f"{client.base_url}/station#/queue")
                times: dict[str, list[float]] = {"fresh": [], "again": []}
                for board in boards:
                    times["fresh"].append(first_sight_ms(page, board))
                    if options.picture is not None and boards is large:
                        page.screenshot(path=str(options.picture))
                    page.wait_for_timeout(SETTLE_MS)
                for board in boards:
                    times["again"].append(first_sight_ms(page, board))
                page.wait_for_timeout(3 * SETTLE_MS)
                frames = frame_times_ms(page)
                browser.close()
            print(shown(name, times, frames), flush=True)


if __name__ == "__main__":
    main()
