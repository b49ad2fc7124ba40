"""Vectors as the ledger keeps them: little-endian float32, nothing else."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float32]


def encode(vector: ArrayLike) -> bytes:
    """The bytes that a provider settles for one input."""
    return np.asarray(vector, dtype="<f4").tobytes()


def decode(result: bytes) -> Vector:
    """The vector that `result` holds. Raises ValueError when it holds none."""
    if not result or len(result) % 4:
        raise ValueError(f"{len(result)} bytes are no vector of float32")
    return np.frombuffer(result, dtype="<f4").astype(np.float32, copy=False)


def normalised(vectors: Vector) -> Vector:
    """Each row (or the one vector) at length one, so that a product is a cosine; what cannot be is zero."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        clean = np.nan_to_num(vectors.astype(np.float32, copy=False), nan=0.0, posinf=0.0, neginf=0.0)
        lengths = np.sqrt(np.square(clean, dtype=np.float64).sum(axis=-1, keepdims=True))
        scaled = np.where(lengths > 0, clean / np.where(lengths > 0, lengths, 1.0), 0.0)
    return np.ascontiguousarray(scaled, dtype=np.float32)
