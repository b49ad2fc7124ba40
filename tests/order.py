"""The order in which the workers of a run take files: lengthy ones early and apart, small ones last.

By the number of their tests, which is what pytest-xdist goes by, files of few tests that take long would all
come at the end. Most of them wait, for leases to run out or for processes to start, so the processors would
have little to do then, and one of them would run alone. Among the others, they wait while those compute.
"""

import pytest

LENGTHY = (
    "tests/acceptance/test_rabbitmq.py",
    "tests/conformance/test_plans.py",
    "tests/acceptance/test_redis.py",
    "tests/simulation/test_simulation.py",
    "tests/acceptance/test_embedded.py",
    "tests/docs/test_how_to.py",
    "tests/page/test_2_looking.py",
    "tests/indexing/test_crash.py",
    "tests/guard/test_processes.py",
    "tests/races/test_g4_nothing_lost.py",
    "tests/worker/test_drain.py",
    "tests/acceptance/test_service_faults.py",
    "tests/page/test_1_working.py",
    "tests/worker/test_up.py",
    "tests/fundamentals/test_cli_demo.py",
    "tests/page/test_3_moving.py",
    "tests/worker/test_messages.py",
    "tests/jobs/test_5_crash.py",
    "tests/worker/test_limits.py",
    "tests/worker/test_starting.py",
    "tests/acceptance/test_service_restart.py",
    "tests/conformance/test_search_pgvector.py",
    "tests/money/test_5_budget_races.py",
    "tests/moving/test_5_crash.py",
    "tests/worker/test_at_rest.py",
)
BETWEEN = 3


def spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Lengthy files one by one among the others, and of those the large ones first."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    lengthy = [name for name in LENGTHY if name in files]
    others = sorted(files.keys() - set(lengthy), key=lambda name: (-len(files[name]), name))
    values: list[str] = []
    while lengthy or others:
        values += [*lengthy[:1], *others[:BETWEEN]]
        lengthy, others = lengthy[1:], others[BETWEEN:]
    return [item for name in values for item in files[name]]
