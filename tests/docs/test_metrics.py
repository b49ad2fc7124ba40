"""The page of metrics and what is exposed say the same: names, types and labels."""

import re
from pathlib import Path

from holdfast import settings
from holdfast.api.metrics import Counting
from holdfast.engine import wakeups
from holdfast.service.operations import Operations
from holdfast.store.features import open_database
from holdfast.worker.health import WorkerHealth
from holdfast.worker.shared_state import Mark, PoolState
from holdfast.worker.supervisor import WorkerIdentity, WorkerSupervisor

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*) ?\| .*\w.* \|$", re.MULTILINE)


def documented(section):
    body = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    return {name: (type_name, labels.replace(" ", "")) for name, type_name, labels in ROW.findall(body)}


def exposed(collector):
    result = {}
    for family in collector.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = getattr(family, "_labelnames", ())
        result[name] = (family.type, ",".join(labels))
    return result


def test_the_page_tells_every_metric_of_the_api(sqlite_url):
    """No more, no fewer; a metric without its row is not there yet."""
    db = open_database(sqlite_url)
    assert exposed(Counting(Operations(db))) == documented("The API")
    db.close()


def test_the_page_tells_every_metric_of_a_worker(tmp_path):
    """The same for the port of a worker."""
    card = WorkerIdentity("id", "name", "broker", ("bulk",), (), 1)
    pool_state = PoolState(1)
    for mark in Mark:
        pool_state.rows[0][mark] = 1.0
    overseer = WorkerSupervisor(settings.Settings(data_dir=tmp_path), card, pool_state, wakeups.Nobody())
    overseer.progress.swept = 1.0
    assert exposed(WorkerHealth(overseer)) == documented("A worker")
