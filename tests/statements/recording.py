"""Every statement that the product sends while the tests run, each once, with its caller and some values.

A statement is the product's when the innermost frame that is not the store's own plumbing is in
`src/holdfast`: what a test asks for by hand is not recorded. It is caught where both ways of executing meet,
just before the driver, so that the tests run through the same code as without it. A statement that was seen
before costs one look into a set.
"""

import contextlib
import os
import pickle
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

SOURCE = str(Path(__file__).resolve().parents[2] / "src" / "holdfast") + os.sep
PLUMBING = tuple(
    f"{SOURCE}store{os.sep}{name}.py" for name in ("database", "statements", "dialect", "time_limits")
)
# The schema is made by migrations, which lock what they change and are not the daily business.
LEFT_OUT = (f"{SOURCE}store{os.sep}migrat",)
PLAIN = re.compile(r"\s*(SELECT|UPDATE|DELETE|INSERT|WITH)\b", re.IGNORECASE)
# A list that is written out into the statement, one mark for each value.
LISTED = re.compile(r"\((?:(?:\?|%\(\w+\)s(?:::[\w ]+)?)(?:, )?){2,}\)")


@dataclass(frozen=True)
class Sent:
    """One statement as the driver was given it; `names` are those of its values, where they are known."""

    dialect: str
    text: str
    caller: str
    values: Any
    names: tuple[str, ...] = ()


def fingerprint(text: str) -> str:
    """What tells two statements apart: their text, whatever the number of values in a list."""
    return LISTED.sub("(…)", text)


class Recorder:
    """Writes each statement down as it comes, so that a process that is killed has told what it did."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._seen: set[tuple[str, str]] = set()
        self._texts: set[tuple[str, str]] = set()
        self._originals: dict[str, Any] = {}

    def start(self) -> None:
        """From now on every execution passes here."""
        for name in ("do_execute", "do_executemany", "do_execute_no_params"):
            self._originals[name] = getattr(DefaultDialect, name)
            setattr(
                DefaultDialect, name, self._listening(self._originals[name], many=name == "do_executemany")
            )

    def stop(self) -> None:
        """Nothing passes here any more."""
        for name, original in self._originals.items():
            setattr(DefaultDialect, name, original)

    def _listening(self, original: Any, *, many: bool) -> Any:
        def execute(dialect: Any, cursor: Any, text: str, *rest: Any, **named: Any) -> Any:
            if (dialect.name, text) not in self._texts:
                values = rest[0] if rest and rest[0] is not None else ()
                context = named.get("context", rest[1] if len(rest) > 1 else None)
                self._note(dialect, text, values[0] if many and values else values, context)
            return original(dialect, cursor, text, *rest, **named)

        return execute

    def _note(self, dialect: Any, text: str, values: Any, context: Any) -> None:
        if not PLAIN.match(text) or getattr(dialect, "holdfast_simulated", False):
            self._texts.add((dialect.name, text))
            return
        caller = _caller()
        if caller is None:
            return
        self._texts.add((dialect.name, text))
        places = getattr(getattr(context, "compiled", None), "positiontup", None)
        names = tuple(values) if isinstance(values, dict) else tuple(places or ())
        key = (dialect.name, fingerprint(text))
        if key not in self._seen:
            self._seen.add(key)
            sent = _kept(Sent(dialect.name, text, caller, values, names))
            with (self._folder / f"{os.getpid()}.pickle").open("ab") as file:
                pickle.dump(sent, file)


@dataclass(frozen=True)
class AsJson:
    """A value that the driver is given as JSON; what it wraps it in cannot be kept."""

    value: Any


def _kept(sent: Sent) -> Sent:
    """The same with values that can be kept."""
    bare = lambda value: AsJson(value.obj) if hasattr(value, "obj") else value
    values = sent.values
    if isinstance(values, dict):
        return Sent(sent.dialect, sent.text, sent.caller, {k: bare(v) for k, v in values.items()}, sent.names)
    return Sent(sent.dialect, sent.text, sent.caller, tuple(bare(v) for v in values), sent.names)


def _caller() -> str | None:
    """Who of the product asked; None if it was a test, or a migration."""
    frame = sys._getframe(3)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PLUMBING) or f"{os.sep}sqlalchemy{os.sep}" in name or name == "<string>":
            frame = frame.f_back  # type: ignore[assignment]
            continue
        if not name.startswith(SOURCE) or name.startswith(LEFT_OUT):
            return None
        function = frame.f_code.co_qualname.replace(".<locals>", "")
        return f"{name.removeprefix(SOURCE)}:{function}"
    return None


def load(folder: Path) -> Iterator[Sent]:
    """Every statement that was saved, each once."""
    seen: dict[tuple[str, str], Sent] = {}
    for path in sorted(folder.glob("*.pickle")):
        with path.open("rb") as file, contextlib.suppress(EOFError):
            while True:
                sent = pickle.load(file)
                seen.setdefault((sent.dialect, fingerprint(sent.text)), sent)
    yield from sorted(seen.values(), key=lambda sent: (sent.dialect, sent.caller, sent.text))
