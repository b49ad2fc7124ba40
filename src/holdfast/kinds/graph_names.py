"""Names of entities: when two spellings are one name, and which names a model is asked about.

Spellings that differ in case, in the form of letters, in an article or in the plural are one name. Names that
may mean the same thing although they differ more are put into a *block*, and a model is asked once for each
block. A block is what its names are, so that it is asked about again only when it has another name.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from holdfast.core.text import plain
from holdfast.kinds.neighbour_groups import digest

MOST_NAME = 120
MOST_TYPE = 40
# Names that one call is about, at most; of first words that more names have, neighbours are together.
MOST_BLOCK = 24
LEAST_FIRST = 3

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_EDGES = "\"'\u201c\u201d\u2018\u2019`*_.,;:()[]{}<>|# "
_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "le", "la", "les", "el", "los", "las"})


def displayed(name: str) -> str:
    """A name as it is shown: one line, of bounded length, without what surrounds it; empty if it is none."""
    line = " ".join(plain(name[: 4 * MOST_NAME]).split()).strip(_EDGES)
    line = line[:MOST_NAME].strip()
    return line if _WORD.search(line) else ""


def normalised(name: str) -> str:
    """What all spellings of a name have in common; empty for a name without a letter or digit."""
    words = _WORD.findall(unicodedata.normalize("NFKC", name[: 4 * MOST_NAME]).casefold())
    if len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join([*words[:-1], _singular(words[-1])]) if words else ""


def key_of(normal: str) -> str:
    """The key of the entity with this normalised name."""
    return digest(f"entity\n{normal}")


def type_of(written: object) -> str:
    """The type of an entity as a model wrote it: a word or two in small letters; empty if it is none."""
    if not isinstance(written, str):
        return ""
    return " ".join(_WORD.findall(plain(written[: 4 * MOST_TYPE]).casefold()))[:MOST_TYPE].strip()


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def blocks(names: Iterable[str]) -> list[list[str]]:
    """Normalised names that may mean the same, in lists of two and more, each in canonical order.

    Names with the same first word are together; initials with what they may stand for; and the same words in
    another order.
    """
    together: dict[str, set[str]] = {}
    initials: dict[str, list[str]] = {}
    listed = sorted(set(names))
    for name in listed:
        words = name.split()
        if len(words) > 1:
            initials.setdefault("".join(word[0] for word in words), []).append(name)
            together.setdefault(f"words {' '.join(sorted(words))}", set()).add(name)
        if len(words[0]) >= LEAST_FIRST:
            together.setdefault(f"first {words[0]}", set()).add(name)
    for name in listed:
        if 1 < len(name) <= 8 and name in initials:
            together.setdefault(f"initials {name}", set()).update([name, *initials[name]])
    distinct = {tuple(part) for each in together.values() for part in _parts(sorted(each)) if len(part) > 1}
    return [list(each) for each in sorted(distinct)]


def _parts(names: Sequence[str]) -> list[Sequence[str]]:
    """Parts of at most so many; a part ends where a name's own digest says so, or where it is full."""
    if len(names) <= MOST_BLOCK:
        return [names]
    parts: list[list[str]] = [[]]
    for name in names:
        ends = len(parts[-1]) >= MOST_BLOCK // 2 and int(digest(name)[:2], 16) < 32
        if parts[-1] and (ends or len(parts[-1]) == MOST_BLOCK):
            parts.append([])
        parts[-1].append(name)
    return list(parts)


def merged(names: Iterable[str], groups: Iterable[Sequence[str]]) -> dict[str, str]:
    """For each name the one that stands for it, given groups that mean the same: the longest of them."""
    above: dict[str, str] = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    for group in groups:
        members = sorted({name for name in group if name in above})
        for other in members[1:]:
            first, second = sorted((top(members[0]), top(other)), key=lambda name: (-len(name), name))
            above[second] = first
    return {name: top(name) for name in above}


def most_common(counts: Mapping[str, int]) -> str:
    """What was counted most; among equals the first in the alphabet."""
    return min(counts, key=lambda each: (-counts[each], each)) if counts else ""
