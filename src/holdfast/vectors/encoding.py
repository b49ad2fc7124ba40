"""Vectors as the ledger stores them: little-endian float32, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = LazyModule("numpy")


Vector: TypeAlias = "NDArray[np.float32]"


def encode(vector: ArrayLike) -> bytes:
    """The bytes that a provider settles for one input."""
    return np.asarray(vector, dtype="<f4").tobytes()


def decode(result: bytes) -> Vector:
    """The vector in `result`. Raises ValueError if there is none."""
    if not result or len(result) % 4:
        raise ValueError(f"{len(result)} bytes are no vector of float32")
    return np.frombuffer(result, dtype="<f4").astype(np.float32, copy=False)


def normalised(vectors: Vector) -> Vector:
    """Each row (or the vector) scaled to length one, so that a product is a cosine; zero if impossible."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.vecdot(vectors, vectors))[..., None]
        scaled = vectors / lengths
        if not np.isfinite(lengths).all() or not lengths.all():
            # Too long for float32, not numbers, or of zero length.
            wide = np.nan_to_num(vectors.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
            longest = np.sqrt(np.vecdot(wide, wide))[..., None]
            scaled = wide / np.where(longest > 0, longest, 1.0)
    return np.ascontiguousarray(scaled, dtype=np.float32)
