"""The facts about the installation that the settings name, for `holdfast doctor`."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from holdfast import extras
from holdfast.bootstrap import examination
from holdfast.cli import context
from holdfast.core.errors import HoldfastError
from holdfast.doctor.facts import InstallationFacts
from holdfast.doctor.gather import Gathered
from holdfast.settings import Settings


@dataclass(frozen=True, slots=True)
class Examined:
    """The facts, and the folder where data is stored."""

    gathered: Gathered
    own: InstallationFacts
    folder: Path


def gathered(*, offline: bool, management: str | None) -> Examined:
    """The facts about this installation; those of its database if it can be read. Nothing is created."""
    loaded = context.loaded()
    known = _of_workers(loaded, offline=offline, management=management)
    ready = False
    if not offline:
        database = examination.database(loaded)
        known += database
        ready = any(
            each.error is None and each.revision == each.needed_revision for each in database.databases
        )
    return Examined(known, _installation(loaded, ready=ready), loaded.data_dir)


def _of_workers(loaded: Settings, *, offline: bool, management: str | None) -> Gathered:
    if not extras.is_installed("celery"):
        return Gathered(notes=('workers were not examined: pip install "holdfast[celery]"',))
    from holdfast.worker import examination as of_workers  # noqa: PLC0415 - Celery takes a moment to load

    return of_workers.facts(loaded, offline=offline, management=management)


def _installation(loaded: Settings, *, ready: bool) -> InstallationFacts:
    if ready:
        with contextlib.suppress(HoldfastError), context.services() as services:
            return examination.installation(loaded, services.runtime.db)
    return examination.installation(loaded, None)
