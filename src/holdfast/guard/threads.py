"""A blocking call awaited by a coroutine, in a thread of its own."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """What the function answers or raises. If the caller stops waiting, the function goes on all the same.

    A thread for each, and no pool: a paid call may wait for another one, and a full pool would hold both.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(set_outcome: Callable[[], None]) -> None:
        if not future.done():  # it is, if the caller stopped waiting
            set_outcome()

    def run() -> None:
        outcome: Callable[[], None]
        try:
            result = function()
            outcome = lambda: future.set_result(result)  # noqa: E731 - one of two
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it
            problem = error
            outcome = lambda: future.set_exception(problem)  # noqa: E731
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(end, outcome)

    threading.Thread(
        target=contextvars.copy_context().run, args=(run,), name="holdfast-pay", daemon=True
    ).start()
    return await future


def in_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine answers or raises, run by the loop of another thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
