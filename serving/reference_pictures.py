"""Golden references as a page can show them: a large one made smaller, and none in a format browsers lack."""

from __future__ import annotations

import cv2
import numpy as np

from inspect_vit.image_io import read_image

LARGEST_SHOWN_PX = 8192
JPEG_QUALITY = 90


def shown_picture(data: bytes, longest_px: int, *, max_pixels: int) -> bytes:
    """A picture as the model sees it (upright, 8 bit) as JPEG bytes, its longest side at most `longest_px`.

    Smaller pictures keep their size.
    """
    picture, _ = read_image(data, max_pixels=max_pixels)
    height, width = picture.shape[:2]
    scale = longest_px / max(height, width)
    if scale < 1.0:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    bgr = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    assert done
    return encoded.tobytes()
