"""Workers die while trees, graphs and mind maps are made: they go on, and nothing is paid twice."""

import pytest

from holdfast.testing.meter import Meter
from tests.jobs.derived_kills import KINDS, KillScenario
from tests.live_install import mill as running

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.g4, pytest.mark.g5, pytest.mark.g7]
SOON = {"lease_ttl": 4, "sweep_interval": 1}
# The defaults, of which the promise speaks.
USUAL = {"lease_ttl": 12, "sweep_interval": 2}
WITHIN = 15.0


def killed(kind, kills, documents, url, monkeypatch, tmp_path, *, keyed=True, **more):
    """What so many kills cost; all that was promised of any of them is true."""
    chosen = KINDS[kind]
    with Meter(honour_keys=keyed, chat=chosen.chat) as meter:
        settings = {"database_url": url, "llm_provider": "openai", "llm_base_url": meter.base_url}
        settings |= {"order_deadline": 4, "llm_key_retention": 86400 if keyed else 0, **more}
        with running(monkeypatch, tmp_path, chosen.write(documents), **settings) as (runtime, worker):
            figures = KillScenario(chosen, meter, runtime, worker, seed=15).run(kills)
    print(f"{kind}, {'keyed' if keyed else 'unkeyed'}: {figures}")
    excess = figures.charges - figures.distinct
    assert excess == 0 if keyed else excess <= min(figures.hit, figures.doubted)
    return figures


@pytest.mark.timeout(300)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("kind", "documents"), [("raptor", 2), ("graph", 2), ("mindmap", 30)])
def test_workers_killed(kind, documents, database_url, monkeypatch, tmp_path):
    """Another goes on where they died, and charges are as many as calls."""
    killed(kind, 2, documents, database_url, monkeypatch, tmp_path, **SOON)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize(("kind", "documents"), [("raptor", 16), ("graph", 12), ("mindmap", 90)])
def test_fifty_workers_killed(kind, documents, keyed, database_url, monkeypatch, tmp_path):
    """Charges divided by distinct calls are 1.000; without keys, calls in flight; resumed within 15 s."""
    figures = killed(kind, 50, documents, database_url, monkeypatch, tmp_path, keyed=keyed, **USUAL)
    assert max(figures.resumed) <= WITHIN
