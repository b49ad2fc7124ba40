"""Processes that each serve the API on one database, and call it until they die at a fault point."""

import os
import signal
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from holdfast import faults
from tests.api.install import ApiInstall, ApiResponse, Client
from tests.races import actor

CONTEXT = actor.CONTEXT
CONTEXT.set_forkserver_preload(
    ["pytest", "tests.races.actor", "tests.actions.crash_processes", "tests.api.callers"]
)
DEADLINE = 120.0
CROWD = 8
STEPS = ("upload", "index", "job")
MOST_TURNS = 50


class Bare(ApiInstall):
    """An installation that does not check responses against OpenAPI, which is slow to build."""

    def described(self) -> dict[str, Any]:
        return {}

    def hold_against_openapi(self, *_: object) -> None:
        pass


def content(turn: int) -> bytes:
    """All hand in the same bytes in the same turn."""
    return f"What everybody has in turn {turn}.".encode()


def ask(client: Client, step: str, turn: int, key: str) -> ApiResponse:
    """One request; whoever makes it again with the same key gets the same answer."""
    headers = {"Idempotency-Key": key} if key else {}
    if step == "upload":
        return client.upload("collections/shelf/documents", content(turn), headers=headers)
    if step == "job":
        return client.post("collections/shelf/jobs", {"kind": "qa"}, headers=headers)
    response = client.upload("collections/shelf/documents", content(turn)).json["document"]["id"]
    return client.post(f"documents/{response}/index", {"mode": "retry"}, headers=headers)


def told(said: ApiResponse) -> tuple[str, str]:
    """What became of the request, and the run that it is about."""
    body = said.json
    if said.status == 409:
        return said.code, body["error"]["active"]["run_id"]
    return body["disposition"], body.get("job_id") or body["run"]["id"]


def perform(url: str, folder: Path, go: Any, pipe: Connection, number: int, at: str) -> None:
    """The life of a process: the same requests as everybody, turn by turn, until it is killed.

    The first turn is lived in peace and without keys, so that somebody hears who has won, and what is done
    once by a process is left for later.
    """

    def die(point: str) -> None:
        if point == at:
            os.kill(os.getpid(), signal.SIGKILL)

    begin = number // CROWD * MOST_TURNS  # no crowd hands in what one before it has
    with closing(Bare(url, folder)) as install:
        go.wait(DEADLINE)
        for round_no in range(begin, begin + MOST_TURNS):
            faults.arm(die if round_no > begin else None)
            for step in STEPS:
                pipe.send((step, round_no, None))
                key = f"{number}-{round_no}-{step}" if round_no > begin else ""
                pipe.send((step, round_no, told(ask(install.client, step, round_no, key))))
        faults.arm(None)


class Caller:
    """A process that begins when all wait at `go`, and dies when it gets to `at`."""

    def __init__(self, url: str, folder: Path, go: Any, number: int, at: str) -> None:
        self.number, self.at = number, at
        self._pipe, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(
            target=perform, args=(url, folder, go, theirs, number, at), daemon=True
        )
        self._process.start()
        theirs.close()

    def end(self) -> list[tuple[str, int, tuple[str, str] | None]]:
        """It is dead by SIGKILL: all that it was answered, and at last what it was not."""
        heard = []
        try:
            while self._pipe.poll(DEADLINE):
                heard.append(self._pipe.recv())
        except EOFError:
            pass
        self._process.join(DEADLINE)
        code = self._process.exitcode
        self._process.kill()
        assert code == -signal.SIGKILL, f"{self.at}: it ended with {code}"
        return [each for each in heard if each[2] is not None] + heard[-1:]
