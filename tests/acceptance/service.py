"""The service as its clients see it: `holdfast api` and workers as real processes on one of the stacks.

The provider of embeddings and the language model are a meter. A proxy stands before the broker's and the
database's server, so that either can go away without being stopped for others; none before a database
that belongs to the test, which may be stopped itself.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from typing import Any, Self, TypeVar

from holdfast import bootstrap
from holdfast.chaos import scene, stacks
from holdfast.chaos.proxy import Proxy
from holdfast.chaos.stacks import Stack
from holdfast.chaos.waiting import TooLateError, until
from holdfast.testing.meter import Meter
from tests.api.install import PREFIX, ApiInstall, ApiResponse, Client
from tests.worker.programs import Program

DONE_WITHIN = 90.0
MODEL = "text-embedding-3-small"
ENDED = {"success", "failed", "not_indexed"}

T = TypeVar("T")


class Service:
    """One API, its workers, and everything between them."""

    hold_against_openapi = ApiInstall.hold_against_openapi

    def __init__(self, stack: Stack, meter: Meter, **changes: object) -> None:
        self.stack, self.meter = stack, meter
        self.programs: list[Program] = []
        self.workers: list[Program] = []
        self._undo = contextlib.ExitStack()
        self.broker = self._before(stack.broker.url) if stack.postgresql else None
        shared = stack.postgresql and stack.database_server is None
        self.database = self._before(stack.database_url) if shared else None
        self.environment = stack.environment() | self._provider() | self._places()
        self.environment |= {f"HOLDFAST_{name.upper()}": str(value) for name, value in changes.items()}
        self._undo.callback(self._clear)
        try:
            bootstrap.migrated(scene.settings(self.environment))
            api = self.start("api", "--port", "0")
            self.port = int(api.says(r"holdfast api: http://127\.0\.0\.1:(\d+)")[1])
            self.openapi = self._openapi()
        except BaseException:
            self._undo.close()
            raise
        self.client = Client(self)  # type: ignore[arg-type]

    def _before(self, url: str) -> Proxy:
        return self._undo.enter_context(Proxy(*stacks.host_and_port(url)))

    def _places(self) -> dict[str, str]:
        created = {}
        if self.broker is not None:
            created["HOLDFAST_BROKER_URL"] = stacks.through(self.stack.broker.url, self.broker.port)
        if self.database is not None:
            created["HOLDFAST_DATABASE_URL"] = stacks.through(self.stack.database_url, self.database.port)
        return created

    def _provider(self) -> dict[str, str]:
        created = {"HOLDFAST_WEBHOOK_PRIVATE": "true", "HOLDFAST_EMBEDDING_MODEL": MODEL}
        for name in ("EMBEDDING", "LLM"):
            created[f"HOLDFAST_{name}_PROVIDER"] = "openai"
            created[f"HOLDFAST_{name}_BASE_URL"] = self.meter.base_url
            created[f"HOLDFAST_{name}_API_KEY"] = "meter"
            created[f"HOLDFAST_{name}_KEY_RETENTION"] = "86400" if self.meter.honour_keys else "0"
        return created

    def _openapi(self) -> dict[str, Any]:
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", f"{PREFIX}/openapi.json")
            body: dict[str, Any] = json.loads(connection.getresponse().read())
        return body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _clear(self) -> None:
        self.meter.release()
        for program in self.programs:
            program.clear()

    def start(self, *words: str) -> Program:
        """The command was started; it may not be ready yet."""
        log = self.stack.folder / f"{len(self.programs)}-{words[0]}.log"
        program = Program(words, self.environment, log)
        self.programs.append(program)
        return program

    def worker(self, concurrency: int = 2) -> Program:
        """A worker that is starting."""
        self.workers.append(self.start("worker", "--concurrency", str(concurrency)))
        return self.workers[-1]

    def wait(self, true: Callable[[], T], what: str, seconds: float = DONE_WITHIN) -> T:
        """The first true answer; the logs of all processes are told when there is none in time."""
        try:
            return until(true, seconds, what, every=0.1)
        except TooLateError as error:
            logs = [f"--- {each.log.name}\n{each.said()[-6000:]}" for each in self.programs]
            raise TooLateError("\n".join([str(error), *logs])) from None

    @staticmethod
    def linger(seconds: float) -> None:
        """A pause, where the length of an outage is what is tried out."""
        time.sleep(seconds)

    def document(self, document_id: str) -> Any:
        """The document as it is shown."""
        return self.client.get(f"documents/{document_id}").json

    def ended(self, document_id: str) -> Any:
        """The document, when its indexing has ended."""

        def shown() -> Any:
            document = self.document(document_id)
            return document if document["index_status"] in ENDED else None

        return self.wait(shown, f"document {document_id} ends")

    def held(self, text: str, *, to: str) -> Any:
        """A document whose one order is at the provider, and is held there until `meter.release`."""
        self.meter.wait_idle()
        self.meter.hold("before")
        response = self.client.text(text, to=to)
        self.meter.wait_open(timeout=DONE_WITHIN)
        return response


def at_once(number: int, do: Callable[[int], ApiResponse]) -> Sequence[ApiResponse]:
    """What so many clients were answered who asked in the same moment."""
    start = threading.Barrier(number)
    answers: list[ApiResponse | None] = [None] * number

    def ask(place: int) -> None:
        start.wait(30)
        answers[place] = do(place)

    threads = [threading.Thread(target=ask, args=(position,)) for position in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    items = [each for each in answers if each is not None]
    assert len(items) == number, "somebody was not answered"
    return items
