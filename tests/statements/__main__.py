"""Runs tests, and explains every statement that the product sent meanwhile, on databases with 100,000 rows.

    python -m tests.statements [--verbose] [--recorded FOLDER] -- python -m pytest ...

Ends with the tests' own code if they fail; otherwise with 1, and says which, when a statement reads more than
it answers and is not among the exceptions, or could not be explained.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from holdfast.store.base import migrate
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from tests.conftest import RECORD
from tests.statements import explaining, growing
from tests.statements.exceptions import EXCEPTIONS
from tests.statements.recording import Sent, environment, load


@dataclass
class Report:
    """What came of explaining: the bad statements with their faults, and who needed an exception."""

    bad: list[tuple[Sent, Sequence[explaining.Fault]]] = field(default_factory=list)
    excepted: Counter[str] = field(default_factory=Counter)


def main(words: list[str]) -> int:
    """The exit code."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="python -m tests.statements", description=__doc__)
    parser.add_argument("--recorded", type=Path, help="where the statements of an earlier run are")
    parser.add_argument("--verbose", action="store_true", help="show the statements themselves")
    parser.add_argument(
        "--whole",
        action="store_true",
        help="the tests are all there are: an exception of nobody is bad as well",
    )
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="print what store/base/statistics.py is to say of SQLite's tables",
    )
    options = parser.parse_args(words[:cut])
    if options.statistics:
        return _print_statistics()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.recorded or Path(temporary)
        if tests := words[cut + 1 :]:
            code = subprocess.run(tests, env=os.environ | environment(folder), check=False).returncode
            if code:
                return code
        statements = load(folder)
    reports = _explained(statements)
    _print(reports, verbose=options.verbose)
    gone = EXCEPTIONS.keys() - {sent.caller for sent in statements} if options.whole else set()
    for caller in sorted(gone):
        print(f"statements: {caller} asks for nothing; take it out of tests/statements/exceptions.py")
    return int(any(report.bad for report in reports.values()) or bool(gone))


def _explained(statements: Sequence[Sent]) -> dict[str, Report]:
    """By dialect, what is bad and what is excepted; both databases work at the same time."""
    began = time.monotonic()
    makers = {"sqlite": _sqlite, "postgresql": _postgresql}
    sent = {name: [one for one in statements if one.dialect == name] for name in makers}
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(makers)) as pool:
        # Made one after another, for Alembic knows only one migration at a time.
        urls = {name: stack.enter_context(makers[name]()) for name in makers if sent[name]}
        running = {name: pool.submit(_explain, url, sent[name]) for name, url in urls.items()}
        reports = {name: future.result() for name, future in running.items()}
    numbers = " and ".join(f"{len(sent[name]):,} of {name}" for name in reports)
    seconds = time.monotonic() - began
    print(f"statements: {numbers} explained with {growing.ROWS:,} rows in a table in {seconds:.0f} s")
    return reports


def _explain(url: str, statements: Sequence[Sent]) -> Report:
    report, db = Report(), open_database(url)
    try:
        growing.grow(db)
        _check_sight(db, statements[0].dialect)
        for sent in statements:
            faults = explaining.faults(db, sent)
            allowed = EXCEPTIONS.get(sent.caller)
            if faults and allowed is not None and allowed.covers(faults, sent.dialect):
                report.excepted[sent.caller] += 1
            elif faults:
                report.bad.append((sent, faults))
    finally:
        db.close()
    return report


def _check_sight(db: Database, dialect: str) -> None:
    """Return if the explainer finds fault with what is known to be bad."""
    for text in (*explaining.KNOWN_BAD, *([explaining.MUTANT] if db.postgresql else [])):
        faults = explaining.faults(db, Sent(dialect, text, "tests.known_bad", ()))
        assert faults, f"the explainer is blind to {text}"


def _print(reports: dict[str, Report], *, verbose: bool) -> None:
    for name, report in reports.items():
        for sent, faults in report.bad:
            print(f"statements: {name}: {sent.caller}: {'; '.join(fault.text for fault in faults)}")
            if verbose:
                print(f"{sent.text}\n{explaining.filled(sent)!r:.600}\n")
        print(f"statements: {name}: {len(report.bad)} bad, {report.excepted.total()} excepted")


def _print_statistics() -> int:
    with _sqlite() as url:
        db = open_database(url)
        growing.grow(db, analysed=True)
        query = "SELECT tbl, idx, stat FROM sqlite_stat1 WHERE idx IS NOT NULL ORDER BY tbl, idx"
        for table, index, stat in db.read(lambda tx: tx.connection.exec_driver_sql(query).all()):
            if table in growing.BIG:
                print(f'    ("{table}", "{index}"): "{stat}",')
        db.close()
    return 0


@contextlib.contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/grown.db"
        migrate.upgrade(url)
        yield url


@contextlib.contextmanager
def _postgresql() -> Iterator[str]:
    server = json.loads(RECORD.read_text())["postgresql"]["url"]
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
