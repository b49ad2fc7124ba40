"""What is the same in every test and dear to make: made once in a process, not once for every test.

Each test opens databases and installations of its own, as each process of a service does once in its life.
Four things that it then works out depend on nothing but what is installed: the text that a statement is
compiled to on a dialect, the newest migration, the weights of the model that comes with the package, and the
certificates that are trusted. They took a large part of the processor time of all tests. A process that lives
long has them as they are kept here, which also shows a statement that is taken for another. Nothing else is
shared: no connection, no row, nor which statements a database has seen before.
"""

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import pytest
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

from holdfast.providers import local
from holdfast.store.base import dialect, revisions, statements

MOST = 5000  # several times the statements of all tests


class Compiled(LRUCache[Any, Any]):
    """Compiled statements by all that tells them apart but the engine's own dialect, the first of its key."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key[1:], value)


@contextmanager
def once() -> Iterator[None]:
    """Meanwhile all of this is made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialect, "build", _sharing(dialect.build))
        patch.setattr(statements, "_prepare", _remembering(statements._prepare))
        patch.setattr(revisions, "known", functools.cache(revisions.known))
        patch.setattr(local, "_load", functools.cache(local._load))
        patch.setattr(httpcore, "default_ssl_context", functools.cache(httpcore.default_ssl_context))
        yield


def _sharing(build: Any) -> Any:
    """Engines of one sort have one cache of compiled statements."""
    caches: dict[Any, Compiled] = {}

    @functools.wraps(build)
    def built(*given: Any, **how: Any) -> Engine:
        engine: Engine = build(*given, **how)
        engine._compiled_cache = caches.setdefault(_sort(engine.dialect), Compiled(MOST))
        return engine

    return built


def _remembering(make: Any) -> Any:
    """A statement is made ready once for each sort of engine."""
    ready: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def made(statement: Any, spoken: Any, many: bool, names: Any) -> Any:
        known = ready.setdefault(statement, {})
        key = (_sort(spoken), many, names)
        if key not in known:
            known[key] = make(statement, spoken, many, names)
        return known[key]

    return made


def _sort(spoken: Any) -> tuple[str, bool]:
    """The simulated clock is another word than the real one."""
    return spoken.name, getattr(spoken, "holdfast_simulated", False)
