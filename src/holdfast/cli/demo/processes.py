"""The processes of the demonstration: started, watched, killed, frozen, and none left behind."""

import contextlib
import http.client
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from holdfast.cli import processes
from holdfast.cli.demo.narration import Narrator

PATIENCE = 30.0


class StageError(Exception):
    """The demonstration cannot go on; the message says what was waited for."""


class Actor:
    """One child process that says what it does, a JSON object to a line."""

    def __init__(self, name: str, module: str, *words: str) -> None:
        self.name = name
        # A session of its own: Ctrl-C reaches the parent alone, which then ends its children in order.
        self._process = subprocess.Popen(  # noqa: S603 - our own modules, our own words
            processes.command(words, module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._complaint: list[str] = []
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._collect)]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                self._heard.put(json.loads(line))
        self._heard.put(None)

    def _collect(self) -> None:
        self._complaint += self._process.stderr or ()

    def hear(self, event: str | None = None) -> dict[str, Any]:
        """The next thing it says (that is `event`); StageError when it ends or stays silent instead."""
        while True:
            try:
                heard = self._heard.get(timeout=PATIENCE)
            except queue.Empty:
                raise StageError(f"{self.name} did not say {event!r} within {PATIENCE:.0f} s") from None
            if heard is None:
                said = self._complaint[-1].strip() if self._complaint else "and said nothing"
                raise StageError(f"{self.name} ended before {event!r}: {said}")
            if event is None or heard.get("event") == event:
                return heard

    def go_on(self) -> None:
        """Give it the line that it waits for."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write("\n")
                self._process.stdin.flush()

    def kill(self) -> None:
        """It is gone, without a chance to say goodbye."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """It is stopped in the middle of whatever it does; the kernel has confirmed it."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """It goes on as if nothing had happened."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """It was asked to stop, and has."""
        self._process.terminate()
        self.wait()

    def wait(self) -> None:
        """It has ended by itself, well."""
        try:
            code = self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise StageError(f"{self.name} did not end within {PATIENCE:.0f} s") from None
        if code:
            self._threads[1].join(timeout=1)
            said = self._complaint[-1].strip() if self._complaint else ""
            raise StageError(f"{self.name} ended with code {code} {said}")

    def clear(self) -> None:
        """Nothing of it is left, whatever state it was in. SIGKILL also ends what is frozen."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(timeout=1)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


A = TypeVar("A", bound=Actor)


class MeterActor(Actor):
    """The provider: a process of its own that charges, and keeps the bill."""

    def __init__(self, name: str, *, keyed: bool) -> None:
        words = ["--latency", "0.05", *(["--honour-keys"] if keyed else [])]
        super().__init__(name, "holdfast.testing.meter", *words)
        self.keyed = keyed
        self.url = ""

    def open(self) -> None:
        """It listens, and its address is known."""
        self.url = str(self.hear()["url"])

    def totals(self) -> dict[str, int]:
        """The bill as it stands at the provider."""
        return dict(self._ask("GET", "/meter"))

    def log(self) -> list[dict[str, Any]]:
        """Every exchange, in order of arrival."""
        return list(self._ask("GET", "/meter/log"))

    def wait_charged(self) -> int:
        """Return once an order is open here and charged; answers how many calls it carries."""
        self._ask("GET", "/meter/wait?open=1&charged=1&timeout=20")
        held = [entry for entry in self.log() if entry["charged"] and entry["replied_at"] is None]
        return sum(len(entry["inputs"]) for entry in held)

    def stall(self, after: int, seconds: float) -> None:
        """Answer `after` orders as usual; charge the one that follows, and keep its answer back."""
        script = ["answer"] * after + [{"do": "answer", "stall_after": seconds}]
        self._ask("POST", "/meter/plan", {"script": script})

    def _ask(self, verb: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        try:
            connection.request(verb, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            reply = json.load(answer)
        except OSError as error:
            raise StageError(f"{self.name} does not answer ({error})") from error
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise StageError(f"{self.name} says {answer.status} to {path}")
        return reply


class Cast:
    """Everybody who was started. Leaving the block ends them all, however it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._actors: list[Actor] = []
        self._lock = threading.Lock()
        self._over = False

    def meter(self, name: str, *, keyed: bool = False) -> MeterActor:
        """A provider."""
        meter = self._join(lambda: MeterActor(name, keyed=keyed))
        meter.open()
        return meter

    def worker(self, name: str, database: str, meter: MeterActor, *, wait_at: int = 0) -> Actor:
        """A worker with Holdfast."""
        words = ["--name", name, "--database", database, "--folder", str(self.folder), "--meter", meter.url]
        extra = (["--keyed"] if meter.keyed else []) + ["--wait-at", str(wait_at)]
        return self._join(lambda: Actor(name, "holdfast.cli.demo.worker", *words, *extra))

    def plain_loop(self, name: str, document: str, meter: MeterActor, *, wait_at: int = 0) -> Actor:
        """A worker without it."""
        words = ["--folder", str(self.folder), "--document", document, "--meter", meter.url]
        extra = ["--wait-at", str(wait_at)]
        return self._join(lambda: Actor(name, "holdfast.cli.demo.plain_loop", *words, *extra))

    def _join(self, start: Callable[[], A]) -> A:
        with self._lock:
            if self._over:
                raise StageError("the demonstration is over")
            actor = start()
            self._actors.append(actor)
            return actor

    def end(self) -> None:
        """Nobody is left, and nobody joins any more."""
        with self._lock:
            self._over = True
        for actor in self._actors:
            actor.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


@contextlib.contextmanager
def ended_like_interrupted(narrator: Narrator) -> Iterator[None]:
    """SIGTERM and a closed terminal end the block as Ctrl-C does, so that what was started is ended too.

    Python ignores what is raised while it cleans up an object, so the narrator is told as well: it raises
    again before it tells anything more.
    """

    def interrupt(*_: object) -> None:
        narrator.interrupted = True
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
