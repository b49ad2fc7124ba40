"""`make statements`: every recorded statement is explained on both databases, with 100,000 rows in each.

Ends with 1, and says which, when one reads more than it answers and is not among the exceptions, or when an
exception is no longer met.
"""

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from sqlalchemy import exc

from holdfast.store import migrate
from holdfast.store.database import Database
from tests.conftest import RECORD
from tests.statements import explaining, growing
from tests.statements.exceptions import EXCEPTIONS
from tests.statements.recording import Sent, load


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.statements", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".statements"))
    parser.add_argument(
        "--all", action="store_true", help="the whole suite was recorded: look for old exceptions"
    )
    parser.add_argument("--verbose", action="store_true", help="show the statements themselves")
    given = parser.parse_args()
    statements = list(load(given.folder))
    if not statements:
        print(f"statements: none was recorded in {given.folder}")
        return 0
    began, bad, met = time.monotonic(), 0, set()
    for url, dispose in (_sqlite(), _postgresql()):
        if url is None:
            print("statements: no PostgreSQL; run `make services-up`")
            continue
        try:
            bad += _explain(url, statements, met, verbose=given.verbose)
        finally:
            dispose()
    old = sorted(set(EXCEPTIONS) - met) if given.all else []
    for caller in old:
        print(f"statements: {caller} is an exception that nothing needs any more")
    numbers = Counter(sent.dialect for sent in statements)
    print(
        f"statements: {dict(numbers)} explained with {growing.ROWS:,} rows"
        f" in {time.monotonic() - began:.0f} s; {bad} bad, {len(met)} excepted"
    )
    return 1 if bad or old else 0


def _explain(url: str, statements: list[Sent], met: set[str], *, verbose: bool) -> int:
    db, bad = Database(url), 0
    try:
        growing.grow(db)
        name = "postgresql" if db.postgresql else "sqlite"
        for sent in statements:
            if sent.dialect != name:
                continue
            try:
                wrong = explaining.faults(db, sent)
            except (exc.DBAPIError, exc.StatementError) as error:
                wrong = [f"cannot be explained: {str(error.orig or error).splitlines()[0]}"]
            if wrong and sent.caller in EXCEPTIONS:
                met.add(sent.caller)
            elif wrong:
                bad += 1
                print(f"statements: {name}: {sent.caller}: {'; '.join(wrong)}")
                if verbose:
                    print(f"{sent.text}\n{sent.values!r:.300}\n")
    finally:
        db.close()
    return bad


def _sqlite() -> tuple[str, object]:
    folder = tempfile.TemporaryDirectory()
    url = f"sqlite:///{folder.name}/grown.db"
    migrate.upgrade(url)
    return url, folder.cleanup


def _postgresql() -> tuple[str | None, object]:
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    server = record.get("postgresql", {}).get("url")
    if server is None:
        return None, lambda: None
    name = f"hf_statements_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    migrate.upgrade(url)

    def dispose() -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    return url, dispose


if __name__ == "__main__":
    sys.exit(main())
