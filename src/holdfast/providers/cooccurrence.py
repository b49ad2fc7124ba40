"""What a text names, and what stands in one sentence with it, found without understanding either.

Names are runs of capitalised words and technical words (`HTTP2`, `snake_case`, `CamelCase`). A capital at the
beginning of a sentence says nothing: such a word counts if it is a name elsewhere in the text. Two names in
one sentence are related by that sentence. Everything is copied from the text, in a fixed order, in time
linear in its length.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.providers import extractive

RELATION = "appears with"
MOST_NAMES = 150
MOST_IN_SENTENCE = 8
MOST_WORDS = 6
MOST_FINDINGS = 5

_TOKEN = re.compile(r"[^\s]{1,200}")
_EMPHASIS = re.compile(r"\*+(?=\w)|(?<=[\w.!?])\*+")
_APOSTROPHES = "'\u2019"
_EDGES = "\"'\u201c\u201d\u2018\u2019`*_.,;:!?()[]{}<>|#\u2026"
_JOINING = frozenset({"of", "de", "van", "von", "der", "du", "da", "di", "la", "&"})
_PLAIN_WORDS = """
    a an the this that these those it its he she they we you i his her their our your my in on at to for from
    with by of as if and or but not no yes so then when where while after before during since until under over
    about each every all any some most many few one two three first second last next also only both such other
    there here what who whom which why how is are was were be has have had do does did can could may might
    must shall will would monday tuesday wednesday thursday friday saturday sunday january february march
    april june july august september october november december today yesterday tomorrow however therefore
    because mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec cc bcc
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
_ORGANISATIONS = """
    inc ltd llc gmbh ag corp corporation company university institute agency council ministry bank office
    department authority association foundation society group union committee works school
"""
_PLACES = """
    street road avenue square city town village island river lake mountain bay harbour port county bridge park
    valley sea ocean
"""
_KINDS = (("organisation", frozenset(_ORGANISATIONS.split())), ("place", frozenset(_PLACES.split())))
_TITLE_WORDS = "mr mrs ms dr prof professor captain president minister sir lady king queen judge"
_TITLES = frozenset(_TITLE_WORDS.split())


def graph(text: str) -> dict[str, list[dict[str, str]]]:
    """The names of a text and which of them are in a sentence together, as a model would answer."""
    lines = (_EMPHASIS.sub("", line) for line in text.splitlines())
    sentences = [one for line in lines for one in extractive.sentences(line)]
    candidates = [(sentence, _runs(sentence)) for sentence in sentences]
    sure = {name for _, runs in candidates for name, is_sure in runs if is_sure}
    # A word that begins several sentences and is nowhere written small is a name as well.
    unsure = Counter(name for _, runs in candidates for name, is_sure in runs if not is_sure)
    small = {match.group().strip(_EDGES) for match in _TOKEN.finditer(text)}
    sure |= {name for name, count in unsure.items() if count > 1 and name.lower() not in small}
    entities: dict[str, dict[str, str]] = {}
    relations: dict[tuple[str, str], dict[str, str]] = {}
    for sentence, runs in candidates:
        names = list(dict.fromkeys(name for name, is_sure in runs if is_sure or name in sure))
        for name in names:
            if name in entities or len(entities) < MOST_NAMES:
                entities.setdefault(name, {"name": name, "type": _kind(name), "description": sentence})
        usable = [name for name in names if name in entities][:MOST_IN_SENTENCE]
        for at, source in enumerate(usable):
            for target in usable[at + 1 :]:
                relations.setdefault(
                    (min(source, target), max(source, target)),
                    {"source": source, "target": target, "relation": RELATION, "description": sentence},
                )
    return {"entities": list(entities.values()), "relations": list(relations.values())[: 2 * MOST_NAMES]}


def report(text: str, names: Sequence[str]) -> dict[str, Any]:
    """A title, key sentences of what is said of a community, and which of the names each sentence has."""
    sentences = extractive.key_sentences(text, MOST_FINDINGS)
    findings = [
        {"text": sentence, "cites": [name for name in names if name in sentence]} for sentence in sentences
    ]
    title = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    return {"title": title, "summary": " ".join(sentences) or text[:1000], "findings": findings}


def report_names(hint: Mapping[str, Any]) -> list[str]:
    """The names that a hint has."""
    names = hint.get("names")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _runs(sentence: str) -> list[tuple[str, bool]]:
    """Runs of capitalised words and technical words, each with whether more than its place speaks for it."""
    reader = _NameReader()
    begins = True
    for match in _TOKEN.finditer(sentence):
        reader.feed(match.group(), begins=begins)
        # A time or a number in front of a sentence does not make its first word a name.
        begins = begins and not any(letter.isalpha() for letter in match.group())
    reader.close()
    return reader.names


class _NameReader:
    """Takes the words of a sentence one by one, and puts names together."""

    def __init__(self) -> None:
        self.names: list[tuple[str, bool]] = []
        self._run: list[str] = []
        self._is_sure = True

    def feed(self, raw: str, *, begins: bool) -> None:
        word = _without_genitive(raw.strip(_EDGES))
        technical = _is_technical(word)
        if word[:1].isupper() or technical:
            if not word[:1].isupper() or raw[0] in "([{":
                self.close()
            if not self._run:
                self._is_sure = technical or not begins
            self._run.append(word)
            if not word[:1].isupper():
                self.close()
        elif self._run and word in _JOINING:
            self._run.append(word)
        else:
            self.close()
        if raw[-1] in ",;:!?)]}" or len(self._run) >= MOST_WORDS:
            self.close()

    def close(self) -> None:
        """The run ends here."""
        run, self._run = self._run, []
        while run and run[-1] in _JOINING:
            run.pop()
        while run and run[0].casefold() in _PLAIN:
            run, self._is_sure = run[1:], True
        if run and len(run[0]) > 1 and " ".join(run).casefold() not in _TITLES:
            self.names.append((" ".join(run), self._is_sure or len(run) > 1))


def _without_genitive(word: str) -> str:
    return word[:-2] if len(word) > 3 and word[-1] == "s" and word[-2] in _APOSTROPHES else word


def _is_technical(word: str) -> bool:
    if len(word) < 2 or not word[0].isalpha():
        return False
    inner = word[1:]
    mixed = any(letter.isupper() for letter in inner) and word.isalnum()
    return (
        mixed
        or ("_" in inner and word.replace("_", "").isalnum())
        or (any(letter.isdigit() for letter in inner) and word.replace("-", "").isalnum())
    )


def _kind(name: str) -> str:
    words = [word.casefold().strip(".") for word in name.split()]
    if words[0] in _TITLES:
        return "person"
    for kind, ends in _KINDS:
        if any(word in ends for word in words):
            return kind
    return "technology" if _is_technical(name) else "term"
