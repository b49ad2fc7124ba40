"""Reads the options of a source; every error names the option and says what it should be."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.documents import fetch
from holdfast.documents.sources.source import SourceError

MOST_TEXT = 2048
MOST_PATTERNS = 100
MOST_PATTERN = 256


class SourceOptions:
    """The options of one source. `check_unknown` comes last: it refuses what nothing has read."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self._kind = kind
        self._options = options
        self._read: set[str] = set()

    def text(self, name: str, default: str | None = None) -> str:
        """A string of one line; an empty one counts as missing, and without a default that is an error."""
        value = self._value(name)
        if value is None or value == "":
            if default is None:
                raise self.error(name, "is missing")
            return default
        if not isinstance(value, str) or len(value) > MOST_TEXT or not value.isprintable():
            raise self.error(name, f"should be a text of one line, at most {MOST_TEXT:,} characters")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if it is missing."""
        value = self._value(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(name, "should be true or false")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices; the first if it is missing."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise self.error(name, f"should be one of {', '.join(choices)}")
        return value

    def url(self, name: str, default: str | None = None) -> str:
        """An http or https URL without a user name or password, in ASCII."""
        value = self.text(name, default)
        return value if value == default else self.checked_url(name, value)

    def checked_url(self, name: str, value: str) -> str:
        """The URL in ASCII and without its fragment; an error that names the option if it is no URL."""
        try:
            return fetch.checked(value)
        except WorkError as error:
            raise self.error(name, f"is not a URL that can be fetched: {error.message}") from error

    def texts(self, name: str, most: int, *, longest: int = MOST_TEXT) -> tuple[str, ...]:
        """A list of strings without empty ones; none if it is missing."""
        value = self._value(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise self.error(name, "should be a list of texts")
        if len(value) > most:
            raise self.error(name, f"has {len(value):,} entries; at most {most:,} are allowed")
        lines = tuple(each.strip() for each in value)
        for number, line in enumerate(lines, 1):
            if len(line) > longest or not line.isprintable():
                raise self.error(
                    name, f"has an entry, number {number:,}, that is too long or not one line of text"
                )
        return tuple(line for line in lines if line)

    def patterns(self, name: str) -> tuple[str, ...]:
        """Patterns of file names, see `patterns`."""
        return self.texts(name, MOST_PATTERNS, longest=MOST_PATTERN)

    def check_unknown(self) -> None:
        """An error if there is an option that nothing has read: it may be misspelled."""
        unknown = sorted(str(name) for name in set(self._options) - self._read)
        if unknown:
            known = ", ".join(sorted(self._read))
            raise self.error(unknown[0][:100], f"is unknown; a source of type {self._kind} has {known}")

    def error(self, name: str, problem: str) -> SourceError:
        """The error about an option."""
        return SourceError("bad_source", f"the option {name} of the source {problem}")

    def _value(self, name: str) -> Any:
        self._read.add(name)
        return self._options.get(name)
