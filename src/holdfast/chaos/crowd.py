"""Many processes that ask for the same thing at the same moment."""

import multiprocessing
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from holdfast import bootstrap
from holdfast.chaos import scene
from holdfast.chaos.expectations import expect
from holdfast.core.records import Ask, RequestResult
from holdfast.worker import sender as senders

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["holdfast.chaos.crowd"])
PATIENCE = 60.0


def storm(environment: Mapping[str, str], ask: Ask, *, processes: int, requests: int) -> list[RequestResult]:
    """What became of so many requests for the same, made by so many processes that began together."""
    barrier = CONTEXT.Barrier(processes)
    shares = [len(range(first, requests, processes)) for first in range(processes)]
    crowd: list[tuple[Any, Connection]] = []
    try:
        for share in shares:
            mine, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(target=_ask, args=(dict(environment), ask, share, barrier, theirs))
            process.start()
            theirs.close()
            crowd.append((process, mine))
        answers: list[RequestResult] = []
        for _, pipe in crowd:
            expect(pipe.poll(PATIENCE), "a process of the crowd says nothing")
            answers += pipe.recv()
        return answers
    finally:
        for process, pipe in crowd:
            pipe.close()
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()


def _ask(environment: dict[str, str], ask: Ask, times: int, barrier: Any, pipe: Connection) -> None:
    settings = scene.settings(environment)
    sender = senders.open_sender(settings)
    with bootstrap.open_runtime(settings, sender=sender) as runtime:
        runtime.engine.db.read(lambda _: None)  # connected before the start
        barrier.wait(PATIENCE)
        answers = [runtime.engine.request(ask) for _ in range(times)]
    pipe.send(answers)
    sender.close()
