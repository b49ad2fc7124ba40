"""Runs tests, and explains every statement that the product sent meanwhile, on databases with 100,000 rows.

    python -m tests.statements [--verbose] [--recorded FOLDER] -- python -m pytest ...

Ends with the tests' own code if they fail; otherwise with 1, and says which, when a statement reads more than
it answers and is not among the exceptions. With `--report` it only tells.
"""

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from sqlalchemy import exc

from holdfast.store.base import migrate
from holdfast.store.features import open_database
from tests.conftest import RECORD
from tests.statements import explaining, growing
from tests.statements.exceptions import EXCEPTIONS
from tests.statements.recording import Sent, load


def main(words: list[str]) -> int:
    """The exit code."""
    own, tests = (
        (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    )
    parser = argparse.ArgumentParser(prog="python -m tests.statements", description=__doc__)
    parser.add_argument("--recorded", type=Path, help="where the statements of an earlier run are")
    parser.add_argument("--verbose", action="store_true", help="show the statements themselves")
    parser.add_argument("--report", action="store_true", help="tell what is bad, and do not fail for it")
    given = parser.parse_args(own)
    with tempfile.TemporaryDirectory() as folder:
        place = given.recorded or Path(folder)
        if tests:
            code = subprocess.run(
                tests, env=os.environ | {"RECORD_STATEMENTS": str(place)}, check=False
            ).returncode
            if code:
                return code
        statements = list(load(place))
    bad = _explained(statements, verbose=given.verbose) if statements else 0
    return 0 if given.report else bad


def _explained(statements: list[Sent], *, verbose: bool) -> int:
    began, bad, excepted = time.monotonic(), 0, 0
    for database in (_sqlite, _postgresql):
        with database() as url:
            if url is None:
                print("statements: no PostgreSQL; run `make services-up`")
                continue
            wrong, allowed = _explain(url, statements, verbose=verbose)
            bad, excepted = bad + wrong, excepted + allowed
    numbers = Counter(sent.dialect for sent in statements)
    print(
        f"statements: {dict(numbers)} explained with {growing.ROWS:,} rows"
        f" in {time.monotonic() - began:.0f} s; {bad} bad, {excepted} excepted"
    )
    return 1 if bad else 0


def _explain(url: str, statements: list[Sent], *, verbose: bool) -> tuple[int, int]:
    """How many are bad, and how many would be and are excepted."""
    db, bad, excepted = open_database(url), 0, 0
    try:
        growing.grow(db)
        name = "postgresql" if db.postgresql else "sqlite"
        for sent in statements:
            if sent.dialect != name:
                continue
            allowed = EXCEPTIONS.get(sent.caller)
            times = 1.0 if allowed is None or allowed.times is None else allowed.times
            try:
                wrong = explaining.faults(db, sent, most=times)
            except (exc.DBAPIError, exc.StatementError) as error:
                wrong = [f"cannot be explained: {str(error.orig or error).splitlines()[0]}"]
            if wrong and allowed is not None and allowed.times is None:
                excepted += 1
            elif wrong:
                bad += 1
                print(f"statements: {name}: {sent.caller}: {'; '.join(wrong)}")
                if verbose:
                    print(f"{sent.text}\n{sent.values!r:.300}\n")
    finally:
        db.close()
    return bad, excepted


@contextlib.contextmanager
def _sqlite() -> Iterator[str | None]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/grown.db"
        migrate.upgrade(url)
        yield url


@contextlib.contextmanager
def _postgresql() -> Iterator[str | None]:
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    server = record.get("postgresql", {}).get("url")
    if server is None:
        yield None
        return
    name = f"hf_statements_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            url = urlsplit(server)._replace(path=f"/{name}").geturl()
            migrate.upgrade(url)
            yield url
        finally:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
