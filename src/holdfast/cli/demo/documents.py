"""The documents of the demonstration: twelve paragraphs each, no two alike, kept under their digest."""

from collections.abc import Sequence
from pathlib import Path

from holdfast.core import keys

PARAGRAPHS = 12
PER_ORDER = 3
MODEL = "text-embedding-3-small"


def paragraphs(title: str) -> list[str]:
    """A document about `title`."""
    return [
        f"Paragraph {number} of the {title}: what holds when a machine stops in the middle of line {number}."
        for number in range(1, PARAGRAPHS + 1)
    ]


def keep(folder: Path, texts: Sequence[str]) -> str:
    """The document is in the folder; answers its digest, which is its name."""
    digest = keys.digest(*texts)
    (folder / f"{digest}.txt").write_text("\n".join(texts), encoding="utf-8")
    return digest


def read(folder: Path, digest: str) -> list[str]:
    """The paragraphs of a document."""
    return (folder / f"{digest}.txt").read_text(encoding="utf-8").splitlines()
