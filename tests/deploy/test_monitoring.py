"""Alert rules and dashboard name only what Holdfast exports, and every alert is tested."""

import re
import urllib.request
from pathlib import Path

import pytest
import yaml

from holdfast.core.states import Verb
from holdfast.store.protocol.workers import WorkerState
from tests.deploy import expressions

ROOT = Path(__file__).resolve().parents[2]
CASES = yaml.safe_load((ROOT / "deploy/prometheus/rules_test.yml").read_text())["tests"]
ROW = re.compile(r"^\| `(holdfast_\w+)` \| \w+ \| ([\w, ]*) ?\|", re.MULTILINE)


def exported(text):
    """The names of all series that an exposition can have, those of summaries as they are queried."""
    types = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    return {
        f"{name}{suffix}"
        for name, type_name in types
        for suffix in (("_sum", "_count") if type_name == "summary" else ("",))
    }


def test_every_metric_named_is_exported_by_a_running_process(install):
    """An API and a worker are scraped; what no rule or panel may read is what neither of them exports."""
    api, worker = install.start("api"), install.worker()
    url = api.says(r"holdfast api: (http://\S+)")[1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        known = exported(response.read().decode())
    known |= exported(worker.health("/metrics")[1])
    named = {name for each in expressions.everything().values() for name in expressions.metrics(each)}
    assert len(named) > 30
    assert sorted(named - known) == []


def test_every_label_named_belongs_to_its_metric():
    """A selector by a label that the metric does not have matches nothing, and says nothing."""
    rows = ROW.findall((ROOT / "docs/reference/metrics.md").read_text())
    known = {(name, label) for name, labels in rows for label in labels.replace(" ", "").split(",")}
    pairs = {pair for each in expressions.everything().values() for pair in expressions.labels(each)}
    pairs = {(re.sub(r"_(sum|count)$", "", name), label) for name, label in pairs}
    assert len(pairs) > 8
    assert sorted(pairs - known) == []


@pytest.mark.parametrize(
    ("label", "values"), [("verb", set(Verb)), ("state", {*WorkerState, "queued", "running"})]
)
def test_every_value_named_exists(label, values):
    """A misspelt verb or state would keep an alert silent for ever."""
    text = "\n".join(expressions.everything().values())
    named = set(re.findall(rf'\b{label}="([^"]+)"', text))
    assert named
    assert named <= {str(value) for value in values}


def test_every_recorded_series_named_is_recorded():
    """The dashboard and the alerts read only series that the rules record."""
    rules = expressions.of_rules()
    named = {
        name for each in expressions.everything().values() for name in re.findall(r"holdfast:[\w:]+", each)
    }
    assert named
    assert sorted(named - set(rules)) == []


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    """The cases of rules_test.yml, which `make deploy-check` runs with promtool, leave out no alert."""
    alerts = {name for name in expressions.of_rules() if ":" not in name}
    tests = [test for case in CASES for test in case.get("alert_rule_test", ())]
    assert {test["alertname"] for test in tests if test.get("exp_alerts")} == alerts
    assert {test["alertname"] for test in tests if not test.get("exp_alerts")} == alerts


def test_every_alert_says_what_to_do():
    """A summary for the subject line, an action for the person on call, and a known severity."""
    for rule in yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]:
        for alert in (each for each in rule["rules"] if "alert" in each):
            assert set(alert["annotations"]) == {"summary", "action"}, alert["alert"]
            assert alert["labels"]["severity"] in {"critical", "warning", "info"}, alert["alert"]
