"""`holdfast up`: every part of an installation on this machine, restarted when it dies, ended together.

Each part is a process in a session of its own, so that Ctrl-C reaches this one alone, which then ends the
others in order. The kernel tells each part to stop when this process is gone, however it went.
"""

import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from holdfast import bootstrap, settings
from holdfast.bootstrap import relays
from holdfast.cli import component_logs, context, ports, processes
from holdfast.cli.exit_codes import Exit
from holdfast.core.retry import Backoff

BACKOFF = Backoff(first=0.5, factor=2.0, most=15.0)
# A part that ran for this long did not fail at its start.
STEADY = 60.0
KILL_AFTER = 10.0
# API clients wait for seconds at most, never for the orders of a worker.
API_PATIENCE = 30.0
# A relay ends what it carries: until the deadline of the last order, and the time to store the outcome.
RELAY_SLACK = 20.0
PR_SET_PDEATHSIG = 1
# What a part says, whatever its log level is, when it can be used.
READY = re.compile(r"holdfast api: (?P<url>http://\S+)|holdfast (worker|relay): \S+ ready")
# After so many seconds it is said what is not ready yet.
LATE = 15.0
# Documents to look at on a first visit: the papers of a small harbour.


@dataclass(slots=True)
class Component:
    """One process to keep up; with `once`, to be carried through and not started again."""

    name: str
    words: Sequence[str]
    once: bool = False
    # Seconds in which it may end by itself, once it was told to.
    patience: float = 0.0
    says_ready: bool = False
    is_ready: bool = False
    # Told to stop only when all others have ended: what they handed over is in its hands.
    is_last: bool = False
    process: "subprocess.Popen[str] | None" = None
    began: float = 0.0
    failures: int = 0
    again_at: float = 0.0
    reader: threading.Thread | None = field(default=None, repr=False)


class Supervisor:
    """Keeps parts up until it is told to stop, or one of them can never work."""

    def __init__(self, parts: Sequence[Component], lines: component_logs.Lines) -> None:
        self._parts = list(parts)
        # A plain number: two signals at once would wait for each other at the lock of an Event.
        self._signals = 0
        self._lines = lines
        self._url: str | None = None
        self._began = time.monotonic()
        self._is_ready = self._is_late = False

    def run(self) -> int:
        """The exit code: 0 after being told to stop, else that of the part that can never work."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told_to_stop)
        try:
            while not self._signals:
                for part in list(self._parts):
                    if (code := self._look_after(part)) is not None:
                        return code
                self._tell_if_ready()
                time.sleep(0.2)
            return Exit.OK
        finally:
            self._end()

    def _told_to_stop(self, *_: object) -> None:
        self._signals += 1
        if self._signals > 1:
            for part in self._parts:
                _signal(part, signal.SIGKILL)

    def _look_after(self, part: Component) -> int | None:
        """Start the part if it is not up; answers a code when it is of no use to start it again."""
        now = time.monotonic()
        if part.process is None:
            if now >= part.again_at:
                self._start(part)
            return None
        code = part.process.poll()
        if code is None:
            return None
        part.process = None
        if part.once and code == Exit.OK:
            self._parts.remove(part)
            return None
        if code == Exit.USAGE:
            self._say(part.name, "cannot start with this configuration; stopping everything")
            return code
        part.failures = 0 if now - part.began > STEADY else part.failures + 1
        delay = BACKOFF.delay(max(1, part.failures), 0.5)
        part.again_at = now + delay
        self._say(part.name, f"exited with code {code}; restarting in {delay:.1f} s")
        return None

    def _start(self, part: Component) -> None:
        part.began = time.monotonic()
        part.process = subprocess.Popen(  # noqa: S603 - our own module, our own words
            processes.command(part.words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - one system call, no lock is taken in it
        )
        self._say(part.name, f"started, process {part.process.pid}")
        stream = part.process.stdout
        part.reader = threading.Thread(target=self._pass_on, args=(part, stream), daemon=True)
        part.reader.start()

    def _pass_on(self, part: Component, stream: IO[str] | None) -> None:
        for line in stream or ():
            if line.strip():
                self._say(part.name, line.rstrip())
                if part.says_ready and (said := READY.search(line)):
                    self._url = said["url"] or self._url
                    part.is_ready = True

    def _tell_if_ready(self) -> None:
        """Once, and after everything that the parts say at their start: where it can be used."""
        if self._is_ready:
            return
        missing = [part.name for part in self._parts if part.once or (part.says_ready and not part.is_ready)]
        if not missing:
            self._is_ready = True
            self._say("up", f"Ready: {self._url}" if self._url else "Ready, without the API")
        elif not self._is_late and time.monotonic() - self._began > LATE:
            self._is_late = True
            served = f"; the API is at {self._url}" if self._url else ""
            self._say("up", f"Not ready yet: {', '.join(missing)}{served}")

    def _say(self, name: str, line: str) -> None:
        self._lines.write(name, line)

    def _end(self) -> None:
        for is_last in (False, True):
            self._stop([part for part in self._parts if part.is_last is is_last])

    def _stop(self, parts: Sequence[Component]) -> None:
        for part in parts:
            _signal(part, signal.SIGTERM)
        began = time.monotonic()
        for part in sorted(parts, key=lambda part: part.patience):
            if part.process is None:
                continue
            try:
                part.process.wait(max(0.1, began + part.patience + KILL_AFTER - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(part.name, "did not stop in time; killing it")
                _signal(part, signal.SIGKILL)
                part.process.wait()
            if part.reader is not None:
                part.reader.join(timeout=1)


def _signal(part: Component, number: signal.Signals) -> None:
    if part.process is not None and part.process.poll() is None:
        part.process.send_signal(number)


def end_with_parent() -> None:
    """Be told to stop when the parent is gone, however it went. For a child, before its program starts."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:  # the parent died in between
        os._exit(0)


@dataclass(frozen=True, slots=True)
class ComponentOptions:
    """What the command line says is to be up; host and port are those of the settings if it does not."""

    concurrency: int | None = None
    workers: int = 1
    api: bool = True
    sample: bool = False
    host: str | None = None
    port: int | None = None


def up(options: ComponentOptions) -> int:
    """Everything of this machine has been up and has ended."""
    loaded = context.loaded()
    host, port = options.host or loaded.host, loaded.port if options.port is None else options.port
    if options.api and port:
        ports.bound(host, port).close()  # an API that can never be served would be started again for ever
    _prepare(loaded)
    concurrency = [] if options.concurrency is None else ["--concurrency", str(options.concurrency)]
    served = ["api", "--host", host, "--port", str(port)]
    parts = [Component("api", served, patience=API_PATIENCE, says_ready=True)] if options.api else []
    # An order in flight is waited for, however long a task may take to stop.
    patience = max(loaded.drain_timeout, loaded.order_deadline)
    if options.workers and relays.is_useful(loaded):
        longer = patience + RELAY_SLACK
        parts.insert(0, Component("relay", ["relay"], patience=longer, says_ready=True, is_last=True))
    for number in range(options.workers):
        name = "worker" if options.workers == 1 else f"worker{number + 1}"
        parts.append(Component(name, ["worker", *concurrency], patience=patience, says_ready=True))
    if not options.workers:  # each worker sweeps
        parts.append(Component("sweep", ["sweep"]))
    if options.sample:
        parts.append(Component("sample", ["sample"], once=True))
    lines = component_logs.JsonLines() if loaded.log_format == "json" else component_logs.TextLines()
    return Supervisor(parts, lines).run()


def _prepare(loaded: settings.Settings) -> None:
    """The embedded database is made or brought up to date; another one is the business of a person."""
    if bootstrap.sqlite_file(loaded.database_url.get_secret_value()) is not None:
        bootstrap.migrated(loaded)
