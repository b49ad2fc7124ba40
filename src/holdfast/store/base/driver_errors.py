"""Errors of a database driver, reported in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from holdfast.core.errors import StoreUnavailableError


@contextmanager
def answering(message: str) -> Iterator[None]:
    """Driver errors in this block become a StoreUnavailableError; `{}` in `message` is the first line."""
    try:
        yield
    except exc.DBAPIError as error:
        lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise StoreUnavailableError(message.format(lines[0])) from error
