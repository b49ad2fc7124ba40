"""Vectors as they are stored and sent: little-endian float32. Without numpy, which the core does not have."""

import base64
import math
import sys
from array import array
from collections.abc import Iterable


def decoded(text: str) -> bytes:
    """The vector that a provider sent as base64; ValueError for anything else."""
    vector = base64.b64decode(text, validate=True)
    if len(vector) % 4:
        raise ValueError("not a whole number of float32")
    return vector


def packed(values: Iterable[float]) -> bytes:
    """The vector of these numbers; TypeError for anything else. A number too large becomes infinite."""
    return _native(array("f", values)).tobytes()


def is_finite(vector: bytes) -> bool:
    """True for a non-empty vector of finite numbers.

    The sum of finite float32 cannot leave the range of a double, and one NaN or infinity spoils it.
    """
    numbers = array("f", vector)
    return bool(numbers) and math.isfinite(sum(_native(numbers)))


def _native(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
