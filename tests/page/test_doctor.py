"""The doctor on the operations page: what is wrong with the installation, and the lines to paste."""

import html
import re
from urllib.request import urlopen

from holdfast.doctor import redaction
from holdfast.doctor.facts import RedisFacts
from holdfast.doctor.gather import Gathered


def seen(install, path="/operations"):
    with urlopen(f"http://127.0.0.1:{install.port}{path}", timeout=60) as said:
        main = said.read().decode()
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", main.partition("<main")[2] or main)).split())


def test_the_panel_shows_what_is_wrong_with_its_fix(install):
    """A problem has its id, what was seen, why it hurts and the fix; the same number is a metric."""
    services = install.built.app.state.services
    endpoint = redaction.endpoint("redis://:hunter22@redis.internal/0")
    server = RedisFacts(endpoint, maxmemory=1 << 30, maxmemory_policy="allkeys-lru", used_memory=1)
    services.examination._brokers = lambda: Gathered(redis=(server,))
    services.examination.examine()
    output = seen(install)
    assert "evict queues and locks. maxmemory-policy is allkeys-lru (redis://redis.internal/0)" in output
    assert "R5: why, and the fix" in output
    assert "CONFIG SET maxmemory-policy noeviction" in output
    assert "hunter22" not in output
    metrics = seen(install, "/metrics")
    assert 'holdfast_doctor_findings{check="R5",severity="error",state="problem"} 1.0' in metrics


def test_the_first_examination_is_not_waited_for_longer_than_a_moment(install, monkeypatch):
    """While it is under way Operations says so, and a scrape has the metric without numbers."""
    services = install.built.app.state.services
    monkeypatch.setattr(services.examination, "report", lambda patience=0.0: None)
    assert "The first examination of the settings, the broker and the database is under way" in seen(install)
    metrics = seen(install, "/metrics")
    assert "# TYPE holdfast_doctor_findings gauge" in metrics
