"""Compound files, in which Office kept documents before 2007 and Outlook keeps messages: what is in them."""

import mmap

from holdfast.documents.parse.source import Readable

_TOLD_BY = (
    "EncryptedPackage",
    "__properties_version1.0",
    "WordDocument",
    "PowerPoint Document",
    "Workbook",
    "Book",
)


def stream_names(path: Readable) -> frozenset[str]:
    """The names of the streams at the top of a compound file.

    Of a file whose directory is damaged, the names of known streams that occur anywhere in it.
    """
    import olefile  # noqa: PLC0415 (in the child alone)

    try:
        with path.open("rb") as file, olefile.OleFileIO(file) as document:
            return frozenset(entry[0] for entry in document.listdir() if len(entry) == 1)
    except (OSError, ValueError, IndexError, RecursionError, AttributeError, TypeError):
        return _mentioned(path)


def _mentioned(path: Readable) -> frozenset[str]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = {name for name in _TOLD_BY if content.find(f"{name}\0".encode("utf-16-le")) >= 0}
        return frozenset(
            names | {name for name in _TOLD_BY[:5] if content.find(name.encode("utf-16-le")) >= 0}
        )
