"""What every command that touches the database begins with."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import bootstrap, settings
from holdfast.bootstrap import drivers
from holdfast.cli import queries
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.records import Ask, Head
from holdfast.store.base.database import Database
from holdfast.store.base.driver_errors import answering
from holdfast.store.follow_ups import follow_up_retries


def loaded() -> settings.Settings:
    """The settings of this process; a mistake in them, or a driver that they lack, is an error of usage."""
    try:
        found = settings.load()
    except settings.SettingsError as error:
        raise CommandError(str(error), Exit.USAGE, code="bad_setting") from error
    drivers.check(found)
    return found


@contextmanager
def runtime() -> Iterator[bootstrap.Runtime]:
    """A runtime by the settings of this process, closed afterwards.

    What a driver raises is told in one line: a person at a terminal can do nothing with a traceback.
    """
    refused = "the database returned an error ({}); check its log"
    with bootstrap.open_runtime(loaded(), ()) as opened, answering(refused):
        yield opened


def one_head(db: Database, tenant: str, subject: str, kind: str | None) -> Head:
    """The head that the command line means; CommandError when there is none, or more than one."""
    found = some_heads(db, tenant, subject, kind)
    if len(found) > 1:
        kinds = ", ".join(head.kind for head in found)
        message = f"{subject} has work of several kinds; add --kind with one of: {kinds}"
        raise CommandError(message, Exit.USAGE, code="several_kinds")
    return found[0]


def some_heads(db: Database, tenant: str, subject: str, kind: str | None) -> tuple[Head, ...]:
    """The heads of a subject, at least one; otherwise CommandError."""
    # What an action does with a document has a subject of its own: document:42#action:3.
    whole, mark, action = subject.partition(follow_up_retries.MARK)
    whole = subject if mark and not action.isdecimal() else whole
    Ask(kind=kind or "index", subject=whole, tenant=tenant).checked()
    found = queries.heads_of(db, tenant, subject, kind)
    if not found:
        what = f"{subject} (kind {kind})" if kind else subject
        message = f"no work was ever requested for {what} of tenant {tenant}; see: holdfast documents list"
        raise CommandError(message, Exit.NOT_FOUND, code="unknown_subject")
    return found


def actor() -> str:
    """Who is at this terminal, for the journal."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"
