"""What can be extracted from a text without understanding it: key sentences, questions, labelled values.

Everything here is a copy of something in the text, in a fixed order: the same text gives the same answer.
"""

import contextlib
import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MOST_SENTENCES = 2000
SENTENCE_WORDS = range(4, 61)
MOST_VALUE = 500
MOST_DEPTH = 8
MOST_FIELDS = 2000
MOST_SUBJECT = 12

_BREAK = re.compile("(?<=[.!?])[\"')\\]]*\\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_WORD = re.compile("[^\\W_]+(?:['\u2019-][^\\W_]+)*")
_EDGES = "#>*-+| \t"
# Bounded everywhere, so that a long run of digits does not cause quadratic matching.
_DIGITS = r"\d[\d ,.']{0,20}\d|\d"
_NUMBER = re.compile(rf"(?<![\w.,])(?:{_DIGITS})(?!\w)")
_COIN = r"(?:[$€£]|\b(?:USD|EUR|GBP|CHF)\b)"
_MONEY = re.compile(rf"{_COIN}\s?({_DIGITS})|({_DIGITS})\s?{_COIN}")
_MONEY_NAMES = ("amount", "total", "price", "sum", "cost", "fee", "salary", "rent", "value")
_VERB = re.compile(r"\s(?:is|are|was|were|has|have|had|means|can|must|will|contains|consists)\s")
_FEW = frozenset(
    _WORD.findall(
        """
        the and for with that this from are was were has have had not but its his her their they you your our
        which who whom what when where will would can could may must shall into onto over under than then also
        all any each more most such only very been being one two a an of in on at to is it as by be or he she
        we there these those
        """
    )
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sep", "sept"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)",
        r"(?<!\d)(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?!\d)",
        r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month>[A-Za-z]{3,9})\.?,?\s+(?P<year>\d{4})(?!\d)",
        r"\b(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})(?!\d)",
    )
)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_URL = re.compile(r"https?://[^\s<>\"')\]]{1,2000}")
_YES, _NO = frozenset({"yes", "true", "y", "ja", "on"}), frozenset({"no", "false", "n", "nein", "off"})


def sentences(text: str) -> list[str]:
    """The distinct sentences of reasonable length, in order."""
    unique: dict[str, None] = {}
    for piece in _BREAK.split(text):
        plain = " ".join(piece.strip(_EDGES).split())
        if len(_WORD.findall(plain)) in SENTENCE_WORDS:
            unique.setdefault(plain)
        if len(unique) >= MOST_SENTENCES:
            break
    return list(unique)


def key_sentences(text: str, count: int) -> list[str]:
    """The `count` sentences with the text's most frequent words, in the order of the text."""
    all_sentences = sentences(text)
    weights = Counter(word for one in all_sentences for word in _words(one))
    scored = [(-_score(one, weights), index) for index, one in enumerate(all_sentences)]
    return [
        all_sentences[index] for _score_, index in sorted(sorted(scored)[:count], key=lambda each: each[1])
    ]


def quotations(question: str, passages: Sequence[tuple[int, str]], count: int) -> list[tuple[str, int]]:
    """At most `count` sentences that have most of the question's words, each with the number of its passage.

    A word that few of the sentences have weighs more. Without any such word, the key sentences.
    """
    candidates: dict[str, int] = {}
    for number, text in passages:
        for sentence in sentences(text):
            candidates.setdefault(sentence, number)
    stems = {_stem(word) for word in _words(question)}
    shared = {sentence: stems & {_stem(word) for word in _words(sentence)} for sentence in candidates}
    frequency = Counter(word for words in shared.values() for word in words)
    worth = {
        sentence: sum(1.0 / frequency[word] ** 0.5 for word in words) / (len(_words(sentence)) + 8)
        for sentence, words in shared.items()
        if words
    }
    best = sorted(worth, key=lambda sentence: (-worth[sentence], candidates[sentence], sentence))[:count]
    top = worth[best[0]] if best else 0.0
    chosen = [sentence for sentence in best if worth[sentence] >= top / 2]
    chosen = chosen or key_sentences("\n".join(text for _, text in passages), 1)
    return [(sentence, candidates[sentence]) for sentence in chosen if sentence in candidates]


def _stem(word: str) -> str:
    """The word without its ending: enough to see that `opened` and `opens` are about the same."""
    return word[:5] if len(word) > 6 else word.rstrip("s")


def summary(text: str, tokens: int) -> str:
    """A title, which is the beginning of a sentence, and below it key sentences of at most about `tokens`."""
    chosen: list[str] = []
    room = 4 * tokens
    for sentence in key_sentences(text, max(3, tokens // 50)):
        room -= len(sentence) + 1
        if chosen and room < 0:
            break
        chosen.append(sentence)
    if not chosen:
        return "The text says nothing."
    words = chosen[0].split()
    title = " ".join(words[:MOST_SUBJECT]).strip(".,;:!?")
    return f"{title}\n{' '.join(chosen)}"


def _words(sentence: str) -> list[str]:
    return [word for word in map(str.lower, _WORD.findall(sentence)) if len(word) > 2 and word not in _FEW]


def _score(sentence: str, weights: Mapping[str, int]) -> float:
    """How many of the text's frequent words a sentence has; verbs and numbers raise it."""
    words = _words(sentence)
    if not words:
        return 0.0
    base = sum(weights[word] for word in set(words)) / (len(words) + 4)
    return base * (1.5 if _VERB.search(sentence) else 1.0) * (1.2 if _NUMBER.search(sentence) else 1.0)


def pairs(text: str, count: int) -> list[dict[str, str]]:
    """At most `count` questions, each with an answer from the text."""
    answers: dict[str, str] = {}
    for sentence in key_sentences(text, max(0, count)):
        question, answer = _question(sentence)
        answers.setdefault(question, answer)
    return [{"question": question, "answer": answer} for question, answer in answers.items()]


def _question(sentence: str) -> tuple[str, str]:
    verb = _VERB.search(sentence)
    subject = sentence[: verb.start()] if verb is not None else ""
    if _words(subject) and len(subject.split()) <= MOST_SUBJECT:
        return f"What does the text say about {_lowered(subject)}?", sentence
    number = _NUMBER.search(sentence)
    if number is not None:
        gap = f"{sentence[: number.start()]}____{sentence[number.end() :]}"
        return f"Which number is missing: “{gap}”", number.group()
    words = sorted(set(_words(sentence)), key=lambda word: (-len(word), word))
    about = " and ".join(words[:2]) or sentence[:40]
    return f"What does the text say about {about}?", sentence


def _lowered(subject: str) -> str:
    """The subject as in the middle of a sentence: `The tower` is `the tower`, a name stays a name."""
    first, _, rest = subject.partition(" ")
    return f"{first.lower()} {rest}".strip() if first.lower() in _FEW else subject


def fields(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema's fields that patterns find; others are absent."""
    definitions = {
        f"#/{word}/{name}": definition
        for word in ("$defs", "definitions")
        for name, definition in (schema.get(word) or {}).items()
    }
    return _object(_Source(text, _labelled(text), definitions, iter(range(MOST_FIELDS))), schema, MOST_DEPTH)


class _Source(NamedTuple):
    """The text that fields are read from, and the definitions that schemas refer to."""

    text: str
    labelled: Mapping[str, str]
    definitions: Mapping[str, Any]
    fields_left: Iterator[int]

    def plain(self, schema: Mapping[str, Any], depth: int = 2 * MOST_DEPTH) -> Mapping[str, Any]:
        """The schema with references resolved; of alternatives, the first that is not null."""
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or ()
        inner = next((each for each in choices if each.get("type") != "null"), None)
        if "$ref" in schema:
            inner = self.definitions.get(schema["$ref"])
        return {**schema, **self.plain(inner, depth - 1)} if isinstance(inner, dict) and depth else schema


def _labelled(text: str) -> dict[str, str]:
    """`Label: value` lines by label, the first of each."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        label, colon, value = line.partition(":")
        name = _name(label)
        if colon and name and value.strip() and len(label) <= 80:
            values.setdefault(name, " ".join(value.split())[:MOST_VALUE].strip("*_` "))
    return values


def _name(label: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    return " ".join(word.lower() for word in re.findall(r"[^\W_]+", spaced))


def _object(source: _Source, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    properties = schema.get("properties")
    for name, field_schema in properties.items() if isinstance(properties, dict) and depth else ():
        if isinstance(field_schema, dict) and next(source.fields_left, None) is not None:
            value = _value(source, name, source.plain(field_schema), depth)
            if value is not None:
                values[name] = value
    return values


def _value(source: _Source, name: str, schema: Mapping[str, Any], depth: int) -> Any:
    text, labelled = source.text, source.labelled
    types = schema.get("type")
    type_ = next((each for each in types if each != "null"), None) if isinstance(types, list) else types
    if type_ == "object":
        return _object(source, schema, depth - 1) or None
    label_value = labelled.get(_name(name)) or labelled.get(_name(str(schema.get("title") or "")))
    if isinstance(schema.get("enum"), list):
        return _one_of(schema["enum"], label_value if label_value is not None else text)
    if type_ == "array":
        items = schema.get("items")
        return _several(text, label_value, name, source.plain(items) if isinstance(items, dict) else {})
    if type_ in {"number", "integer"}:
        return _number(text, label_value, name, whole=type_ == "integer")
    if type_ == "boolean":
        word = (label_value or "").lower().rstrip(".")
        return True if word in _YES else False if word in _NO else None
    return _text(text, label_value, name, str(schema.get("format") or ""))


def _one_of(options: Sequence[Any], text: str) -> Any:
    for option in options:
        if isinstance(option, str) and re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE):
            return option
    return None


def _several(text: str, label_value: str | None, name: str, items: Mapping[str, Any]) -> list[Any] | None:
    if str(items.get("format")) == "email" or "mail" in _name(name):
        return list(dict.fromkeys(_EMAIL.findall(text))) or None
    parts = [part.strip() for part in re.split(r"[;,]", label_value or "") if part.strip()]
    if items.get("type") in {"number", "integer"}:
        read = [amount(part, whole=items.get("type") == "integer") for part in parts]
        return [number for number in read if number is not None] or None
    return parts or None


def _number(text: str, label_value: str | None, name: str, *, whole: bool) -> float | int | None:
    if label_value is not None and (match := _NUMBER.search(label_value)) is not None:
        return amount(match.group(), whole=whole)
    if any(word in _name(name) for word in _MONEY_NAMES) and (money := _MONEY.search(text)) is not None:
        return amount(money.group(1) or money.group(2), whole=whole)
    return None


def amount(written: str, *, whole: bool = False) -> float | int | None:
    """Parse `1,234.50`, `1.234,50` or `1'234`; None if it is not a number."""
    digits = re.sub("[ '\u2019]", "", written)
    last = max(digits.rfind("."), digits.rfind(","))
    if last >= 0 and (len(digits) - last - 1 != 3 or digits.count(".") == digits.count(",") == 1):
        digits = re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :]
    else:
        digits = re.sub(r"[.,]", "", digits)
    try:
        number = float(digits)
    except ValueError:
        return None
    if whole:
        return int(number) if number == int(number) else None
    return number


def _text(text: str, label_value: str | None, name: str, form: str) -> str | None:
    if form in {"date", "date-time"} or (not form and "date" in _name(name).split()):
        found_date = date(label_value or "") or (date(text) if form != "date-time" else None)
        return f"{found_date}T00:00:00Z" if found_date and form == "date-time" else found_date
    if form == "email" or "email" in _name(name).replace("e mail", "email"):
        match = _EMAIL.search(label_value or "") or _EMAIL.search(text)
        return match.group() if match else None
    if form == "uri":
        match = _URL.search(label_value or "") or _URL.search(text)
        return match.group().rstrip(".,;") if match else None
    return label_value or None


def date(text: str) -> str | None:
    """The first valid date in the text, as `2026-11-15`; None if there is none."""
    matches = [match for pattern in _DATES for match in pattern.finditer(text)]
    for match in sorted(matches, key=lambda each: each.start()):
        written = match["month"]
        month = int(written) if written.isdecimal() else _MONTHS.get(written.lower(), 0)
        with contextlib.suppress(ValueError):  # such as the 31st of a short month
            return dt.date(int(match["year"]), month, int(match["day"])).isoformat()
    return None
