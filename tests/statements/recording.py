"""Every statement that the product sends while the tests run, each once, with its caller and some values.

A statement is the product's when the innermost frame that is not the store's own plumbing is in
`src/holdfast`: what a test asks for by hand is not recorded. It is caught where both ways of executing meet,
just before the driver, so that the tests run through the same code as without it. A statement that was seen
before costs one look into a set.

`environment` makes the processes that a test starts record as well: `hook/sitecustomize.py` is loaded by each
of them and begins as soon as SQLAlchemy is there. All write into one folder, a file for each statement, whole
or not at all, so that a process that is killed has told what it did.
"""

import hashlib
import os
import pickle
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "RECORD_STATEMENTS"
NAMED, NAMELESS = ".pickle", ".nameless"
HOOK = Path(__file__).resolve().parent / "hook"
SOURCE = str(Path(__file__).resolve().parents[2] / "src" / "holdfast") + os.sep
PLUMBING = re.compile(r"store/(?:\w+/)?(?:database|statements|dialect|time_limits)\.py")
# The schema is made by migrations, which lock what they change and are not the daily business. The evidence
# of an incident is every row there is.
LEFT_OUT = re.compile(r"store/(?:\w+/)?migrat|chaos/")
PLAIN = re.compile(r"\s*(SELECT|UPDATE|DELETE|INSERT|WITH)\b", re.IGNORECASE)
# Those of the product. What applications send over drivers of their own is the same in other words.
DRIVERS = ("psycopg", "pysqlite")
# A list that is written out into the statement, one mark for each value.
LISTED = re.compile(r"\((?:(?:\?|%\(\w+\)s(?:::[\w ]+)?)(?:, )?){2,}\)")
# The vectors of one collection have a number and a length, which are written into the statement.
SPACE = re.compile(r"(?<=v\.space = )\d+")
DIMENSIONS = re.compile(r"(?<=halfvec\()\d+")


@dataclass(frozen=True)
class Sent:
    """One statement as the driver was given it; `names` are those of its values, where they are known.

    `caller` is the module and the function, without the folder: files move, and exceptions name callers.
    """

    dialect: str
    text: str
    caller: str
    values: Any
    names: tuple[str, ...] = ()


def fingerprint(text: str) -> str:
    """What tells two statements apart: their text, whatever the number of values in a list."""
    return LISTED.sub("(…)", SPACE.sub("1", DIMENSIONS.sub("4", text)))


def environment(folder: Path) -> dict[str, str]:
    """What makes the processes that inherit it record into the folder."""
    return {FOLDER: str(folder.absolute()), "PYTHONPATH": python_path(HOOK)}


def python_path(folder: Path) -> str:
    """Where a process that a test starts imports from: this folder, and as this process was told to."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


class Recorder:
    """Writes each statement down as it comes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._texts: set[tuple[str, str]] = set()
        self._nameless: set[tuple[str, str]] = set()

    def start(self, dialect: Any) -> None:
        """From now on every execution passes here; `dialect` is SQLAlchemy's DefaultDialect."""
        for name in ("do_execute", "do_executemany", "do_execute_no_params"):
            original = getattr(dialect, name)
            setattr(dialect, name, self._listening(original, many=name == "do_executemany"))

    def _listening(self, original: Any, *, many: bool) -> Any:
        def execute(dialect: Any, cursor: Any, text: str, *rest: Any, **named: Any) -> Any:
            if (dialect.name, text) not in self._texts:
                values = rest[0] if rest and rest[0] is not None else ()
                context = named.get("context", rest[1] if len(rest) > 1 else None)
                self._note(dialect, text, values[0] if many and values else values, context)
            return original(dialect, cursor, text, *rest, **named)

        return execute

    def _note(self, dialect: Any, text: str, values: Any, context: Any) -> None:
        key = (dialect.name, text)
        simulated = getattr(dialect, "holdfast_simulated", False)
        if not PLAIN.match(text) or simulated or dialect.driver not in DRIVERS:
            self._texts.add(key)
            return
        names = tuple(values) if isinstance(values, dict) else _positions(context)
        # A statement that is kept ready has values by their place alone. Whoever sends it for the first time
        # names them: that is waited for, and until then this has to do.
        nameless = bool(values) and not names
        if nameless and key in self._nameless:
            return
        caller = _caller()
        if caller is None:
            return
        (self._nameless if nameless else self._texts).add(key)
        digest = hashlib.sha256(f"{dialect.name} {fingerprint(text)}".encode()).hexdigest()
        path = self._folder / f"{digest}{NAMELESS if nameless else NAMED}"
        if not path.exists():
            # Plain values: the class of a process that was started by a test is not the one that reads it.
            record = (dialect.name, text, caller, _storable(values), names)
            draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            draft.write_bytes(pickle.dumps(record))
            draft.replace(path)


def _positions(context: Any) -> tuple[str, ...]:
    """The names of values that go by their place, those of a list one by one; none where they are unknown."""
    positions = getattr(getattr(context, "compiled", None), "positiontup", None) or ()
    lists = getattr(context, "_expanded_parameters", None) or {}
    return tuple(each for name in positions for each in lists.get(name, [name]))


def _storable(values: Any) -> Any:
    """The same values without what a driver wraps them in, which keeps functions that cannot be stored."""
    if isinstance(values, dict):
        return {name: _bare(value) for name, value in values.items()}
    return tuple(_bare(value) for value in values)


def _bare(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    if not hasattr(value, "obj"):
        return value
    if "Json" not in type(value).__name__:
        return value.obj
    from psycopg.types.json import Json  # noqa: PLC0415 - a process on SQLite does without the driver

    return Json(value.obj)


def _caller() -> str | None:
    """Who of the product asked; None if it was a test, or a migration."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(SOURCE):
            path = name.removeprefix(SOURCE)
            if not PLUMBING.match(path):
                function = frame.f_code.co_qualname.partition(".<locals>")[0]
                return None if LEFT_OUT.match(path) else f"{Path(path).stem}.{function}"
        elif f"{os.sep}sqlalchemy{os.sep}" not in name and name != "<string>":
            return None
        frame = frame.f_back
    return None


def load(folder: Path) -> list[Sent]:
    """Every statement that was recorded, each once."""
    named = set(folder.glob(f"*{NAMED}"))
    paths = named | {path for path in folder.glob(f"*{NAMELESS}") if path.with_suffix(NAMED) not in named}
    records = (Sent(*pickle.loads(path.read_bytes())) for path in paths)
    return sorted(records, key=lambda sent: (sent.dialect, sent.caller, sent.text))
