"""Runs a question to its end in a thread of its own, also if nobody listens any more.

A client that hangs up ends its request, but not the call that was paid for: this is read to the end and
settled. The place in the pool of answers is held until then, so that clients that come and go cannot start
more calls than the pool has places. A process that ends waits for what is under way.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from anyio import to_thread

from holdfast.bootstrap import AppServices
from holdfast.service.answers import AnswerPiece, AnswerSource, AskRequest, CitedAnswer
from holdfast.web import slow_requests
from holdfast.web.slow_requests import Pool

AnswerEvent: TypeAlias = tuple[AnswerSource, ...] | AnswerPiece | CitedAnswer

# Questions that are answered at the moment: a task that nothing refers to may be collected as garbage.
_under_way: set["asyncio.Task[CitedAnswer]"] = set()


@dataclass(slots=True)
class AnswerStream:
    """A question that is being answered, and its events so far. Belongs to the event loop."""

    task: "asyncio.Task[CitedAnswer]"
    _events: "asyncio.Queue[AnswerEvent | None]" = field(default_factory=asyncio.Queue)

    async def answer(self) -> CitedAnswer:
        """The answer, when it is complete; what went wrong is raised."""
        return await asyncio.shield(self.task)

    async def events(self) -> AsyncIterator[AnswerEvent]:
        """The sources, the pieces and the answer as they come; what went wrong is raised."""
        while (event := await self._events.get()) is not None:
            yield event
        yield await self.answer()


def start(services: AppServices, request: AskRequest) -> AnswerStream:
    """The question is being answered, and will be whatever becomes of the caller."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()

    def heard(event: tuple[AnswerSource, ...] | AnswerPiece) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    task = loop.create_task(_run(request.tenant, lambda: services.ask.ask(request, heard)))
    _under_way.add(task)

    def ended(done: "asyncio.Task[CitedAnswer]") -> None:
        _under_way.discard(done)
        queue.put_nowait(None)
        if not done.cancelled():
            done.exception()  # looked at, so that a failure nobody waits for is not reported as forgotten

    task.add_done_callback(ended)
    return AnswerStream(task, queue)


async def _run(tenant: str, work: Callable[[], CitedAnswer]) -> CitedAnswer:
    async with slow_requests.places(Pool.ANSWERS).place(tenant) as limiter:
        return await to_thread.run_sync(work, limiter=limiter)
