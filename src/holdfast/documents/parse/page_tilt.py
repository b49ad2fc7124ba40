"""How far a scanned page is tilted, by the lines of its text.

Where lines of text are level, the rows of a picture alternate between dark and light; where they are tilted,
every row is a mixture. So the picture is turned by small angles, and the angle with the strongest alternation
levels it. That is a fixed number of turns of a picture of bounded size, whatever is on it.

Tesseract tolerates a tilt in most typefaces; of a typewritten page at 2 degrees it reads 63 to 91 % of the
words, and all of them once it is level.
"""

import math
from itertools import pairwise
from typing import Any

from holdfast.documents.parse.records import BOX_SCALE

Box = tuple[int, int, int, int]

# Most scanners feed a page more straight than this; beyond it, pictures are found that are no text.
MOST = 4.0
LEAST = 0.7
"""Degrees; recognition does not mind less, and takes a fifth longer over a picture that was turned."""
COARSE, FINE = 0.5, 0.1
SIDE = 500
"""The larger side of the picture that is turned, in pixels."""
GAIN = 1.05
"""How much more the rows must alternate than as they are."""


class LevelPicture:
    """A picture turned so that its lines are level, and where its boxes are in the picture as it was."""

    def __init__(self, picture: Any) -> None:
        tilt = tilt_of(picture)
        self._size = picture.size
        self._tilt = math.radians(tilt)
        # 3: Image.Resampling.BICUBIC
        self.image = picture.rotate(tilt, 3, expand=True, fillcolor=_paper(picture)) if tilt else picture

    def on_the_page(self, box: Box) -> Box:
        """A box (left, top, right, bottom) of `image` as a box of the scan, in ten-thousandths."""
        left, top, right, bottom = box
        corners = [self._before(x, y) for x in (left, right) for y in (top, bottom)]
        across, down = [x for x, _ in corners], [y for _, y in corners]
        wide, high = self._size
        return (
            _share(min(across), wide),
            _share(min(down), high),
            _share(max(across), wide),
            _share(max(down), high),
        )

    def _before(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of `image` was before it was turned."""
        right, down = x - self.image.width / 2, y - self.image.height / 2
        sine, cosine = math.sin(self._tilt), math.cos(self._tilt)
        return (
            cosine * right - sine * down + self._size[0] / 2,
            sine * right + cosine * down + self._size[1] / 2,
        )


def tilt_of(picture: Any) -> float:
    """The angle in degrees by which a grey image of Pillow is to be turned, counter-clockwise; 0 for none."""
    scale = min(1.0, SIDE / max(picture.size))
    small = picture.resize(tuple(max(1, round(side * scale)) for side in picture.size), reducing_gap=2.0)
    paper = _paper(small)
    # A page may be scanned on its side: its lines then are columns.
    upright, sideways = (
        {angle: _alternation(each, angle, paper) for angle in _angles(0.0, MOST, COARSE)}
        for each in (small, small.rotate(90, expand=True))
    )
    scores, image = (
        (upright, small)
        if max(upright.values()) >= max(sideways.values())
        else (sideways, small.rotate(90, expand=True))
    )
    best = max(scores, key=scores.__getitem__)
    near = {angle: _alternation(image, angle, paper) for angle in _angles(best, COARSE, FINE)}
    best = max(near, key=near.__getitem__)
    return best if abs(best) >= LEAST and near[best] > GAIN * scores[0.0] else 0.0


def _paper(picture: Any) -> int:
    """The commonest shade."""
    return max(range(256), key=picture.histogram().__getitem__)


def _share(edge: float, side: int) -> int:
    return min(BOX_SCALE, max(0, round(edge / side * BOX_SCALE)))


def _angles(middle: float, reach: float, step: float) -> list[float]:
    count = round(reach / step)
    return [round(middle + number * step, 2) for number in range(-count, count + 1)]


def _alternation(image: Any, angle: float, paper: int) -> float:
    """How much neighbouring rows differ when the image is turned."""
    turned = image.rotate(angle, fillcolor=paper) if angle else image
    rows = turned.resize((1, turned.height), 4).tobytes()  # 4: Image.Resampling.BOX, the mean of each row
    return float(sum((above - below) ** 2 for above, below in pairwise(rows)))
