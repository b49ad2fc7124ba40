"""What it is worth that statements are made ready once, on both databases: `python -m bench.statements`.

One process, one database, the two ways in turns: as the product does it (`store/base/statements.py`), and
with every statement through SQLAlchemy. Counted is processor time, which a busy machine does not change much;
of the API it has that of the client in it, the same for both.
"""

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from unittest import mock

from bench import places, worker
from holdfast import bootstrap, settings
from holdfast.api import app, server
from holdfast.store.base.statements import Executing

TEXT = "The tide comes in twice a day, and the pilot knows every rock of the harbour. "
PATHS = ("collections/shelf/documents?limit=20", "documents/{}", "collections/shelf", "status")


def main(words: Sequence[str]) -> int:
    """Print the processor time of each way, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m bench.statements", description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--count", type=int, default=150)
    options = parser.parse_args(words)
    for database in (places.POSTGRESQL, places.SQLITE):
        with places.fresh(database) as url, _no_op_task(url) as one:
            _compare(f"no-op task, {database}", one, options.repeats, options.count)
        with places.fresh(database) as url, _installation(url) as (document, requests):
            _compare(f"document of ten chunks, {database}", document, options.repeats, options.count // 5)
            for path, request in requests.items():
                _compare(f"GET {path}, {database}", request, options.repeats, options.count)
    return 0


def _compare(what: str, one: Callable[[], None], repeats: int, count: int) -> None:
    def spent() -> float:
        began = time.process_time()
        for _ in range(count):
            one()
        return (time.process_time() - began) / count * 1000

    for _ in range(10):
        one()
    ready, plain = [], []
    for _ in range(repeats):
        ready.append(spent())
        with mock.patch.object(Executing, "_ready", return_value=None):
            plain.append(spent())
    ratios = [more / less for more, less in zip(plain, ready, strict=True)]
    times = f"{statistics.median(ready):.2f} ms ready, {statistics.median(plain):.2f} ms through SQLAlchemy"
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    print(f"{what}: {times}, ratio {spread}", flush=True)


@contextlib.contextmanager
def _no_op_task(url: str) -> Iterator[Callable[[], None]]:
    engine, number = worker.engine(url), itertools.count()

    def one() -> None:
        assert engine.request(worker.ask(next(number))).created
        assert engine.work_off(most=1)

    with engine:
        yield one
    engine.db.close()


@contextlib.contextmanager
def _installation(url: str) -> Iterator[tuple[Callable[[], None], dict[str, Callable[[], None]]]]:
    """What indexes one more document, and what sends each request; documents are there already."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, contextlib.ExitStack() as stack:
        installed = settings.Settings(data_dir=Path(folder), database_url=url)
        runtime = stack.enter_context(bootstrap.open_runtime(installed))
        served, listening = server.ApiServer(app.build(runtime)), server.bound("127.0.0.1", 0)
        thread = threading.Thread(target=served.run, args=([listening],))
        thread.start()
        stack.callback(listening.close)
        stack.callback(thread.join, 10)
        stack.callback(served.end)
        while not served.started:
            time.sleep(0.01)
        connection = stack.enter_context(
            contextlib.closing(HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=30))
        )

        def call(method: str, path: str, body: object = None) -> dict[str, object]:
            raw = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1/{path}", raw, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer: dict[str, object] = json.loads(response.read())
            assert response.status < 300, answer
            return answer

        call("POST", "collections", {"id": "shelf"})
        number = itertools.count()

        def document() -> None:
            text = "\n\n".join(f"{next(number)}: {TEXT * 20}" for _ in range(10))
            call("POST", "collections/shelf/documents", {"text": text, "title": "A title"})
            runtime.engine.work_off(most=10)

        document()
        document_id = call("GET", "collections/shelf/documents")["documents"][0]["id"]  # type: ignore[index]
        yield document, {path: lambda path=path: call("GET", path.format(document_id)) for path in PATHS}  # type: ignore[misc]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
