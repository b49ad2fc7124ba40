"""The extras of `pip install "holdfast[…]"`: which packages they install, and one line for a missing one.

A package of an extra is imported where it is used and not before, so that the core works without it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from typing import Any

from holdfast.core.errors import BadRequestError

# By extra, the modules that it installs and that Holdfast imports.
MODULES = {
    "celery": ("amqp", "billiard", "celery", "kombu"),
    "server": (
        "PIL",
        "Stemmer",
        "charset_normalizer",
        "docx",
        "fastapi",
        "httptools",
        "jinja2",
        "jsonschema",
        "numpy",
        "olefile",
        "oxmsg",
        "pptx",
        "prometheus_client",
        "pypdfium2",
        "python_calamine",
        "python_multipart",
        "selectolax",
        "starlette",
        "striprtf",
        "uvicorn",
        "wordllama",
        "yaml",
    ),
    "postgres": ("psycopg",),
    "redis": ("redis",),
    "s3": ("botocore",),
    "otel": ("opentelemetry",),
    "ocr": ("tesserocr",),
    "git": ("dulwich",),
    "mcp": ("mcp",),
    "django": ("django",),
}
_EXTRA_OF = {module: extra for extra, modules in MODULES.items() for module in modules}


class MissingExtraError(BadRequestError):
    """A package that an extra installs is not there."""

    code = "driver_missing"

    def __init__(self, extra: str, what: str = "this") -> None:
        super().__init__(f'{what} needs the {extra} extra: pip install "holdfast[{extra}]"')
        self.extra = extra


def extra_of(error: ModuleNotFoundError) -> str | None:
    """The extra that installs what was not found; None for a module that is none of ours to install."""
    return _EXTRA_OF.get((error.name or "").partition(".")[0])


def is_installed(extra: str) -> bool:
    """True when every module of the extra can be imported. Nothing is imported."""
    return all(map(_can_import, MODULES[extra]))


def _can_import(module: str) -> bool:
    # Kombu replaces itself with a module that has no spec, at which `find_spec` raises.
    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None


def require(extras: Iterable[str], what: str) -> None:
    """Return if these extras are installed; otherwise MissingExtraError, which says what needs the first."""
    for extra in extras:
        if not is_installed(extra):
            raise MissingExtraError(extra, what)


class LazyModule:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            value = getattr(importlib.import_module(self._name), attribute)
        except ModuleNotFoundError as error:
            extra = extra_of(error)
            if extra is None:
                raise
            raise MissingExtraError(extra) from error
        self.__dict__[attribute] = value  # from now on an attribute like any other
        return value
