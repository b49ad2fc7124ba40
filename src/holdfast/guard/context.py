"""What is going on in this thread or coroutine: the execution, the tenant and the scope of paid answers."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.guard.execution import Execution

_execution: "ContextVar[Execution | None]" = ContextVar("holdfast_execution", default=None)
_delivery: "ContextVar[Execution | None]" = ContextVar("holdfast_delivery", default=None)
_tenant: ContextVar[str | None] = ContextVar("holdfast_tenant", default=None)
_scope: ContextVar[str | None] = ContextVar("holdfast_scope", default=None)
_again: ContextVar[bool] = ContextVar("holdfast_again", default=False)


def execution() -> "Execution | None":
    """The guarded task that runs here, if one does."""
    return _execution.get()


def delivery() -> "Execution | None":
    """The delivery that is being handled here, whose task may or may not run."""
    return _delivery.get()


def tenant() -> str | None:
    """The tenant that was named for this context, if one was."""
    return _tenant.get()


def scope() -> str | None:
    """Within what answers of a model are reused here outside a run, if that was named."""
    return _scope.get()


def pays_again() -> bool:
    """True if calls are paid here whose like was paid before."""
    return _again.get()


@contextlib.contextmanager
def executing(execution: "Execution") -> Iterator[None]:
    """The task runs in this block."""
    token = _execution.set(execution)
    try:
        yield
    finally:
        _execution.reset(token)


@contextlib.contextmanager
def delivering(execution: "Execution") -> Iterator[None]:
    """The delivery is handled in this block."""
    token = _delivery.set(execution)
    try:
        yield
    finally:
        _delivery.reset(token)


@contextlib.contextmanager
def named_tenant(name: str) -> Iterator[None]:
    """What is requested and paid in this block belongs to this tenant."""
    token = _tenant.set(name)
    try:
        yield
    finally:
        _tenant.reset(token)


@contextlib.contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Answers of models are reused within this name in this block."""
    token = _scope.set(name)
    try:
        yield
    finally:
        _scope.reset(token)


@contextlib.contextmanager
def paying_again() -> Iterator[None]:
    """Calls in this block are paid even if their like was paid before."""
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)
