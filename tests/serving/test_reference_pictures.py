"""Golden references as pages show them: in a format that browsers have, no larger than asked for."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from tests.serving.conftest import encode


def test_a_reference_of_any_format_is_shown_as_large_as_a_page_needs_it(server: Any) -> None:
    halves = np.zeros((240, 360, 3), np.uint8)
    halves[:, 180:] = (40, 90, 200)  # BGR
    halves[::8] = 255
    posted = encode(".tif", halves)
    made = server.client.put("/v1/recipes/shown", files=[("reference", ("halves.tif", posted))])
    assert made.status_code == 200, made.text
    link = made.json()["references"][0]["picture"]
    for longest, size in ((90, (60, 90)), (5000, (240, 360))):
        answer = server.client.get(f"{link}&longest={longest}")
        assert answer.headers["content-type"] == "image/jpeg"
        seen = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)
        assert seen is not None
        assert seen.shape[:2] == size
        small = cv2.resize(halves, size[::-1], interpolation=cv2.INTER_AREA)
        assert np.abs(seen.astype(int) - small).mean() < 6
    assert server.client.get(link).content == posted
    for wrong in ("longest=0", "longest=8193", "longest=x", "largest=90"):
        assert server.client.get(f"{link}&{wrong}").status_code == 422
    server.client.delete("/v1/recipes/shown")
