"""How every command that uses the database begins."""

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast import bootstrap, settings
from holdfast.bootstrap import AppServices, drivers
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.engine import wakeups
from holdfast.engine.kinds import Kind


def loaded() -> settings.Settings:
    """The settings of this process; a mistake in them, or a driver that they lack, is an error of usage."""
    try:
        loaded_settings = settings.load()
    except settings.SettingsError as error:
        raise CommandError(str(error), Exit.USAGE, code="bad_setting") from error
    drivers.check(loaded_settings)
    return loaded_settings


class BrokerSender:
    """Wakes workers through the brokers, and loads Celery only once there is somebody to wake."""

    def __init__(self, by: settings.Settings) -> None:
        self._settings = by
        self._sender: wakeups.Sender | None = None

    def _opened(self) -> wakeups.Sender:
        if self._sender is None:
            from holdfast.worker import sender  # noqa: PLC0415 - Celery takes a moment to load

            self._sender = sender.open_sender(self._settings)
        return self._sender

    def wake(self, lane: str) -> None:
        """A wake-up for `lane` will be sent."""
        self._opened().wake(lane)

    def wake_task(self, task_id: int, lane: str) -> None:
        """A message that names this task will be sent."""
        self._opened().wake_task(task_id, lane)

    def close(self) -> None:
        """What was handed in is sent, as far as that takes a moment."""
        if self._sender is not None:
            self._sender.close()  # type: ignore[attr-defined]  # that of `open_sender` has it


@contextmanager
def services(kinds: Sequence[Kind] | None = ()) -> Iterator[AppServices]:
    """The services of this installation, with a way to wake its workers; closed afterwards.

    Only those that ask for work need `kinds`: None for all of them. What a driver raises is told in one line:
    a person at a terminal can do nothing with a traceback.
    """
    by = loaded()
    sender = BrokerSender(by)
    refused = "the database returned an error ({}); check its log"
    try:
        with bootstrap.open_runtime(by, kinds, sender=sender) as runtime, bootstrap.answering(refused):
            yield AppServices(runtime)
    finally:
        sender.close()


def actor() -> str:
    """Who is at this terminal, for the journal."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"
