"""Text that both databases can store.

PostgreSQL refuses NUL bytes in text, and neither driver can encode a lone surrogate. Both occur in foreign
text: messages of exceptions, responses of providers, text extracted from broken files.
"""

import re
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` with every character that a database cannot store replaced by U+FFFD."""
    return text if is_plain(text) else _UNKEEPABLE.sub(REPLACEMENT, text)


def is_plain(text: str) -> bool:
    """True if both databases can store `text` as it is."""
    if text.isascii():  # much faster
        return "\x00" not in text
    return _UNKEEPABLE.search(text) is None


def plain_json(value: Any, depth: int = 64) -> Any:
    """A value of JSON with every text in it made `plain`; ValueError for one that is nested deeper."""
    if isinstance(value, str):
        return plain(value)
    if not isinstance(value, dict | list):
        return value
    if depth <= 0:
        raise ValueError("it is nested too deep")
    if isinstance(value, dict):
        return {plain(name): plain_json(each, depth - 1) for name, each in value.items()}
    return [plain_json(each, depth - 1) for each in value]
