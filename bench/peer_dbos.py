"""DBOS: a queue of workflows with one step each, no limit of concurrency, the default poll.

Its queue takes work only when it polls (once a second), at most `worker_concurrency` workflows at a time: a
limit of 2 would mean two jobs a second. Without a limit it is at its best.

Run in the peers' environment: `prepare URL`, `enqueue URL COUNT`, `work URL MARKS CONCURRENCY`.
"""

import sys
import time

from dbos import DBOS, DBOSClient

from bench import marks

QUEUE, WORKFLOW = "bench", "noop"
started: list[marks.Marks] = []


@DBOS.step()
def step(job: int) -> None:
    """Do nothing but say so."""
    started[0].add(job)


@DBOS.workflow(name=WORKFLOW)
def noop(job: int) -> None:
    """One step."""
    step(job)


def launch(url: str) -> None:
    """The system tables and the queue exist, and this process serves it."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "log_level": "ERROR",
            "application_version": "1",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    DBOS.register_queue(QUEUE)


def main(verb: str, url: str, *words: str) -> None:
    """Do what the harness asked for."""
    if verb == "prepare":
        launch(url)
        DBOS.destroy()
    elif verb == "enqueue":
        client = DBOSClient(system_database_url=url, application_name="bench")
        client.enqueue({"workflow_name": WORKFLOW, "queue_name": QUEUE}, 0)
        begun = time.monotonic()
        for job in range(1, int(words[0])):
            client.enqueue({"workflow_name": WORKFLOW, "queue_name": QUEUE}, job)
        print((int(words[0]) - 1) / (time.monotonic() - begun))
        client.destroy()
    else:
        started.append(marks.Marks(words[0]))
        marks.wait_for_go()
        launch(url)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
