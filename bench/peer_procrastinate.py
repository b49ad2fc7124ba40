"""Procrastinate: LISTEN/NOTIFY on, plain (threaded) tasks, as many at once as asked.

Run in the peers' environment: `prepare URL`, `enqueue URL COUNT`, `work URL MARKS CONCURRENCY`.
"""

import asyncio
import sys
import time

import procrastinate

from bench import marks

QUEUE = "bench"
started: list[marks.Marks] = []


def application(connector: procrastinate.BaseConnector) -> procrastinate.App:
    """The application with its one task."""
    app = procrastinate.App(connector=connector)

    @app.task(queue=QUEUE, name="noop")
    def noop(job: int) -> None:
        started[0].add(job)

    return app


async def work(url: str, concurrency: int) -> None:
    """Serve the queue until killed."""
    app = application(procrastinate.PsycopgConnector(conninfo=url))
    async with app.open_async():
        await app.run_worker_async(queues=[QUEUE], concurrency=concurrency)


def main(verb: str, url: str, *words: str) -> None:
    """Do what the harness asked for."""
    if verb == "work":
        started.append(marks.Marks(words[0]))
        marks.wait_for_go()
        asyncio.run(work(url, int(words[1])))
        return
    with application(procrastinate.SyncPsycopgConnector(conninfo=url)).open() as app:
        if verb == "prepare":
            app.schema_manager.apply_schema()
            return
        task = app.configure_task("noop", queue=QUEUE)
        task.defer(job=0)
        begun = time.monotonic()
        for job in range(1, int(words[0])):
            task.defer(job=job)
        print((int(words[0]) - 1) / (time.monotonic() - begun))


if __name__ == "__main__":
    main(*sys.argv[1:])
