"""Embeddings computed in this process, offline and free, through the same interface as paid ones.

The model is static: its weights come in a package, each word has a vector, and a text is their mean. It loads
at first use, in about a tenth of a second, and needs no network.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.extras import LazyModule
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Profiled, free

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

NAME = "local"
MODEL = "wordllama-256"
DIMENSIONS = 256
_BETWEEN_WORDS = " \u2581\u0120"  # as tokenizers write a space
LOCAL = free(NAME, max_inputs=512)


class LocalProvider(Profiled):
    """A provider that charges nothing and is always available."""

    def __init__(self, profile: Profile = LOCAL) -> None:
        super().__init__(profile)
        self._lock = threading.Lock()
        self._model: Any = None

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the inputs as JSON. Raises ValueError for anything this model does not support."""
        if endpoint != "embeddings":
            raise ValueError(f"the local provider has no {endpoint!r}; it only embeds")
        if model != MODEL:
            raise ValueError(f"the local provider has one model, {MODEL}, not {model!r}")
        if params:
            raise ValueError(f"the local model takes no parameters: {', '.join(sorted(params))}")
        return json.dumps(list(inputs), ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Embed the inputs, if `gate` allows it."""
        if not gate():
            return NotSent("the lease is no longer valid")
        inputs = json.loads(exchange.body.decode("utf-8", "surrogatepass"))
        vectors = self.embed(inputs)
        tokens = sum(self.count_tokens(text) for text in inputs)
        return Answered(
            tuple(vector.tobytes() for vector in vectors),
            input_tokens=tokens,
            output_tokens=0,
            replayed=False,
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of the texts, one per row, little-endian float32; zero for a text without words."""
        with self._lock:
            if self._model is None:
                self._model = _load()
            vectors = np.asarray(self._model.embed(list(texts), norm=False), dtype="<f4")
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, length, out=vectors, where=length > 0)
        return vectors

    def letters_per_token(self, text: str) -> float:
        """How long the pieces are that the model knows of these words; about 1.5 for random letters."""
        with self._lock:
            if self._model is None:
                self._model = _load()
            encoded = self._model.tokenizer.encode(text, add_special_tokens=False).tokens
        pieces = [each for each in encoded if each.strip(_BETWEEN_WORDS)]
        return sum(map(len, text.split())) / max(1, len(pieces))

    def count_tokens(self, text: str) -> int:
        """Return an estimate: one token per four characters."""
        return max(1, len(text) // 4)

    def close(self) -> None:
        """Unload the model."""
        self._model = None


def _load() -> Any:
    import wordllama  # noqa: PLC0415 - takes a moment, and not every process embeds

    # Without `cache_dir` it looks for its tokenizer in the wrong folder of its own package.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
