"""Where the circles of a picture are: stored positions over the whole picture, with some space between them.

The number of steps is bounded, and so is that of the circles: a picture takes the same few milliseconds
whatever positions are stored. The same positions give the same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

STEPS = 24
# How often it is worked out anew which circles are close to each other: every so many steps.
LOOK_AROUND = 6
# No step is left to do once none would move a circle this far, in units of the picture.
NO_PUSH = 0.5
MOST_SPACING = 90.0
FILL = 0.62

Area = tuple[float, float, float, float]
"""Left, top, right and bottom of where circles may be."""


def spread(columns: Sequence[float], rows: Sequence[float], area: Area) -> list[tuple[float, float]]:
    """The middle of each circle, for its stored position (0 to 1 each) in the same order."""
    left, top, right, bottom = area
    at = np.array([_stretched(columns), _stretched(rows)])
    at[0] = left + at[0] * (right - left)
    at[1] = top + at[1] * (bottom - top)
    if len(columns) > 1:
        spacing = float(np.sqrt((right - left) * (bottom - top) / len(columns)) * FILL)
        _push_apart(at, min(spacing, MOST_SPACING), area)
    return [(x, y) for x, y in np.round(at, 1).T.tolist()]


def _stretched(values: Sequence[float]) -> list[float]:
    """The values over 0 to 1: half by value and half by rank, so that one far off crowds no others."""
    low, high = min(values), max(values)
    if high - low < 1e-6:
        return [0.5] * len(values)
    ranks = dict(zip(sorted(values), range(len(values)), strict=True))
    return [((each - low) / (high - low) + ranks[each] / (len(values) - 1)) / 2 for each in values]


def _push_apart(at: NDArray[np.float64], distance: float, area: Area) -> None:
    """Each two that are closer than the distance move apart by half of what is missing, all at once."""
    left, top, right, bottom = area
    one, other = np.triu_indices(at.shape[1], 1)
    close = (one, other)
    for step in range(STEPS):
        if step % LOOK_AROUND == 0:
            near = _apart(at, one, other)[1] < 2 * distance
            close = one[near], other[near]
        by, apart = _apart(at, *close)
        missing = np.maximum(0.0, distance - apart) / 4
        if missing.size == 0 or missing.max() < NO_PUSH:
            return
        moves = by / apart * missing
        for axis in (0, 1):
            back = np.bincount(close[0], moves[axis], at.shape[1])
            at[axis] += np.bincount(close[1], moves[axis], at.shape[1]) - back
        np.clip(at[0], left, right, out=at[0])
        np.clip(at[1], top, bottom, out=at[1])


def _apart(
    at: NDArray[np.float64], one: NDArray[np.intp], other: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How each `other` lies from its `one`: direction and distance. Two on one spot have some direction."""
    by = at[:, other] - at[:, one]
    apart = np.hypot(by[0], by[1])
    same = apart < 1e-3
    if same.any():
        angles = (one + other)[same]
        by[0, same], by[1, same] = np.cos(angles), np.sin(angles)
        apart[same] = 1.0
    return by, apart
