"""`when` of a step: a condition over fields, read by a small grammar and never evaluated as code.

    format == "pdf" and pages > 3
    language in ["de", "fr"] or not metadata.draft
    gist != null and (page < 10 or metadata.author.name == "Ann")

A field that an item does not have is null. Values of different types are never equal, and of those none is
less than the other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.kinds.flows.faults import nearest

MOST_TEXT = 2000
MOST_TOKENS = 400
MOST_DEPTH = 20
WORDS = frozenset({"and", "or", "not", "in", "true", "false", "null"})
_VALUES: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_SIGNS = ("==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ",")
_COMPARISONS = frozenset({"==", "!=", "<=", ">=", "<", ">"})
_SIMILAR = {"=": "==", "&": "and", "|": "or", "!": "not", "~": "not"}

Fields = Mapping[str, Any]


class ConditionError(ValueError):
    """The condition cannot be read; at which character, and what would be right."""

    def __init__(self, position: int, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.message = message
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition and the fields that it reads, each with the position where it stands first."""

    text: str
    holds: Callable[[Fields], bool]
    reads: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # sign, word, field, value, end
    value: Any
    position: int


def parse(text: str) -> Condition:
    """The condition; ConditionError where it is none."""
    if len(text) > MOST_TEXT:
        raise ConditionError(0, f"a condition has at most {MOST_TEXT:,} characters")
    tokens = list(_tokens(text))
    if len(tokens) > MOST_TOKENS:
        raise ConditionError(tokens[MOST_TOKENS].position, "the condition is too long")
    reader = _Reader(tokens)
    evaluate = reader.either(0)
    last = reader.next()
    if last.kind != "end":
        raise _unexpected(last)
    return Condition(text, lambda fields: bool(evaluate(fields)), reader.reads)


def value_of(fields: Fields, path: str) -> Any:
    """The value of a field; null for one that is not there."""
    if path in fields:
        return fields[path]
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token, at = _token(text, at)
        yield token
    yield _Token("end", None, len(text))


def _token(text: str, at: int) -> tuple[_Token, int]:
    character = text[at]
    if character in {'"', "'"}:
        return _quoted(text, at)
    sign = next((each for each in _SIGNS if text.startswith(each, at)), None)
    if sign is not None:
        return _Token("sign", sign, at), at + len(sign)
    end = at + 1
    while end < len(text) and (text[end].isalnum() or text[end] in "_.+-"):
        end += 1
    word = text[at:end]
    if character.isdecimal() or (character in "+-." and len(word) > 1):
        return _number(word, at), end
    if not (character.isalpha() or character == "_"):
        raise ConditionError(at, f"{character!r} has no meaning in a condition", _SIMILAR.get(character))
    if word in _VALUES:
        return _Token("value", _VALUES[word], at), end
    if word in WORDS:
        return _Token("word", word, at), end
    if word.lower() in WORDS:
        raise ConditionError(at, f"{word!r} is written in small letters", word.lower())
    if not all(part.replace("_", "a").replace("-", "a").isalnum() for part in word.split(".")):
        raise ConditionError(at, f"{word[:60]!r} is not a field")
    return _Token("field", word, at), end


def _quoted(text: str, at: int) -> tuple[_Token, int]:
    quote, parts, end = text[at], [], at + 1
    while end < len(text) and text[end] != quote:
        if text[end] == "\\" and end + 1 < len(text):
            end += 1
        parts.append(text[end])
        end += 1
    if end >= len(text):
        raise ConditionError(at, "a quotation mark is missing at the end of this text")
    return _Token("value", "".join(parts), at), end + 1


def _number(word: str, at: int) -> _Token:
    try:
        number = float(word) if any(sign in word for sign in ".eE") else int(word)
    except ValueError:
        raise ConditionError(at, f"{word[:60]!r} is neither a number nor a field") from None
    return _Token("value", number, at)


def _unexpected(token: _Token) -> ConditionError:
    if token.kind == "end":
        return ConditionError(token.position, "the condition ends too early")
    spelt = token.value if token.kind in {"sign", "word", "field"} else repr(token.value)
    likely = nearest(token.value, WORDS) if token.kind == "field" else None
    return ConditionError(token.position, f"{str(spelt)[:60]!r} is not expected here", likely)


class _Reader:
    """Reads tokens by descent; its depth is bounded."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.reads: dict[str, int] = {}

    def next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _takes(self, value: str) -> bool:
        token = self._tokens[self._at]
        if token.kind in {"sign", "word"} and token.value == value:
            self._at += 1
            return True
        return False

    def either(self, depth: int) -> Callable[[Fields], Any]:
        parts = [self._both(depth)]
        while self._takes("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else lambda fields: any(part(fields) for part in parts)

    def _both(self, depth: int) -> Callable[[Fields], Any]:
        parts = [self._one(depth)]
        while self._takes("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else lambda fields: all(part(fields) for part in parts)

    def _one(self, depth: int) -> Callable[[Fields], Any]:
        if depth > MOST_DEPTH:
            raise ConditionError(self._tokens[self._at].position, "the condition is nested too deep")
        if self._takes("not"):
            inner = self._one(depth + 1)
            return lambda fields: not inner(fields)
        if self._takes("("):
            inner = self.either(depth + 1)
            closing = self.next()
            if closing.value != ")" or closing.kind != "sign":
                raise ConditionError(closing.position, "a closing bracket is missing", ")")
            return inner
        return self._comparison()

    def _comparison(self) -> Callable[[Fields], Any]:
        left = self._operand()
        token = self._tokens[self._at]
        if token.kind == "sign" and token.value in _COMPARISONS:
            self._at += 1
            right, sign = self._operand(), token.value
            return lambda fields: _compare(sign, left(fields), right(fields))
        is_not = token.kind == "word" and token.value == "not"
        if is_not:
            self._at += 1
        if self._takes("in"):
            right = self._operand()
            return lambda fields: _contains(right(fields), left(fields)) is not is_not
        if is_not:
            raise _unexpected(token)
        return left

    def _operand(self) -> Callable[[Fields], Any]:
        token = self.next()
        if token.kind == "value":
            return lambda _fields: token.value
        if token.kind == "field":
            self.reads.setdefault(token.value, token.position)
            return lambda fields: value_of(fields, token.value)
        if token.kind == "sign" and token.value == "[":
            return self._list()
        raise _unexpected(token)

    def _list(self) -> Callable[[Fields], Any]:
        values: list[Any] = []
        while not self._takes("]"):
            if values and not self._takes(","):
                raise ConditionError(self._tokens[self._at].position, "a comma is missing in this list", ",")
            token = self.next()
            if token.kind != "value":
                raise _unexpected(token)
            values.append(token.value)
        return lambda _fields: values


def _alike(left: Any, right: Any) -> bool:
    """True for values that can be compared: numbers with numbers, and others with their own type."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (left, right))
    return numbers or type(left) is type(right)


def _compare(sign: str, left: Any, right: Any) -> bool:
    same = _alike(left, right) and left == right
    if sign in {"==", "!="}:
        return same is (sign == "==")
    if not _alike(left, right) or not isinstance(left, str | int | float):
        return False
    less: bool = left < right
    if sign == "<":
        return less
    if sign == "<=":
        return less or same
    return not less and (sign == ">=" or not same)


def _contains(collection: Any, value: Any) -> bool:
    if isinstance(collection, str):
        return isinstance(value, str) and value in collection
    if isinstance(collection, list | tuple):
        return any(_alike(each, value) and each == value for each in collection)
    return False
