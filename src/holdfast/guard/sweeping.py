"""The sweep of an application outside its workers: `holdfast sweep --app module:app`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery import Celery
from celery.app.utils import find_app

from holdfast.core.errors import BadRequestError
from holdfast.engine.sweep import Swept
from holdfast.guard.guard import Guard
from holdfast.guard.publishing import publish_due
from holdfast.guard.task import GuardedTask


@dataclass(frozen=True, slots=True)
class AppSwept:
    """What one round has done: in the database, and how many messages it has published."""

    swept: Swept
    published: int


def guards_of(name: str) -> list[Guard]:
    """The guards of the application that `name` names, as `celery -A` does: module, or module:attribute."""
    try:
        app: Any = find_app(name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"there is no Celery application {name!r}: {error}; use module:app, as for celery -A"
        raise BadRequestError(message, code="bad_app") from error
    if not isinstance(app, Celery):
        message = f"{name!r} is a {type(app).__name__}, not a Celery application; use module:app"
        raise BadRequestError(message, code="bad_app")
    app.loader.import_default_modules()
    guards = {
        id(task.holdfast_guard): task.holdfast_guard
        for task in app.tasks.values()
        if isinstance(task, GuardedTask)
    }
    if not guards:
        message = f"{name!r} has no guarded task; import the modules that have them, as its workers do"
        raise BadRequestError(message, code="bad_app")
    return list(guards.values())


def sweep(guards: Sequence[Guard]) -> list[AppSwept]:
    """One round: work that was left behind is due, and the messages of what is due are published."""
    rounds = []
    for guard in guards:
        runtime = guard.runtime()
        swept = runtime.engine.sweep()
        rounds.append(AppSwept(swept, publish_due(runtime.db, guard.tasks())))
    return rounds
