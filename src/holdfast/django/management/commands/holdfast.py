"""`manage.py holdfast …`: the command line of Holdfast on a database of the project's settings."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from holdfast import cli, settings
from holdfast.core.errors import HoldfastError
from holdfast.django import tables


class Command(BaseCommand):
    """Runs a command of Holdfast."""

    help = "Run a command of Holdfast on the project's database, like: holdfast why report:7"
    # The database may be down, and `holdfast status` is there to say so.
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """All that follows the name of a command is for that command."""
        parser.add_argument(
            "--database", metavar="ALIAS", help="Alias of the database. Default: HOLDFAST_DATABASE."
        )
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the command; it ends this process with its own exit code."""
        try:
            settings.choose(database_url=tables.url(options["database"]))
        except HoldfastError as error:
            raise CommandError(error.message) from error
        before, sys.argv = sys.argv, ["manage.py holdfast", *(options["words"] or ["--help"])]
        try:
            cli.main()
        finally:
            sys.argv = before
