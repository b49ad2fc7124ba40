"""Text that both databases can keep.

PostgreSQL refuses NUL bytes in text, and neither driver can encode a lone surrogate. Both turn up in what
others write: messages of exceptions, answers of providers, text cut out of broken files.
"""

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` with every character that a database cannot keep replaced by U+FFFD."""
    return text if is_plain(text) else _UNKEEPABLE.sub(REPLACEMENT, text)


def is_plain(text: str) -> bool:
    """True when both databases can keep `text` as it is."""
    if text.isascii():  # a fraction of the time
        return "\x00" not in text
    return _UNKEEPABLE.search(text) is None
