"""The page of objectives and alerts, from the rules that Prometheus evaluates."""

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

RULES = Path(__file__).resolve().parents[1] / "deploy/prometheus/rules.yml"
HEAD = """\
# Objectives and alerts

<!-- Written by `make docs` from deploy/prometheus/rules.yml. Change it there. -->

`deploy/prometheus/rules.yml` has these rules for Prometheus, `deploy/grafana/holdfast.json` is a dashboard of
the same [metrics](metrics.md), and `deploy/prometheus/prometheus.yml` an example of the scrape settings; the
alerts use the job name `holdfast-api`. `make deploy-check` runs promtool's tests of the rules: cases in which
each alert fires, and cases in which it must not.

## Objectives

These are starting points: choose your own numbers, and change the rules with them.

**The API answers**: 99.9 % of the requests of 30 days without a status 5xx.

```promql
1 - sum(increase(holdfast_api_requests_total{status=~"5.."}[30d]))
  / sum(increase(holdfast_api_requests_total[30d]))
```

**People do not wait**: 99 % of the time, no interactive task has been queued for more than a minute.

```promql
avg_over_time(holdfast:interactive_prompt:bool[30d])
```

**Nothing is forgotten**: 99.9 % of the time, no duty of the sweep is late by more than a minute.

```promql
avg_over_time(holdfast:duties_on_time:bool[30d])
```

**Money is paid once**: second charges come only from crashes and lost connections, and each is in the bill.

```promql
sum by (model) (increase(holdfast_charges_total{sort="second"}[30d]))
```

A counter of a rare event has no series before the first event. `increase` sees nothing when its series
appears with the value 1, so the alerts about such events also look for series that did not exist at the start
of the window. Several API processes count the same events, hence `max` over instances where numbers matter.

## Alerts

`critical`: somebody must act now. `warning`: within a day. `info`: worth knowing.
"""


def rules() -> list[dict[str, Any]]:
    """Every rule of the file, in order; an alert has the key `alert`, a recorded series `record`."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def page() -> str:
    """The whole page."""
    lines = [HEAD, *(_alert(rule) for rule in rules() if "alert" in rule)]
    lines.append("## Recorded series\n")
    lines += [
        f"`{rule['record']}`\n\n```promql\n{rule['expr']}\n```\n" for rule in rules() if "record" in rule
    ]
    return "\n".join(lines).rstrip() + "\n"


def _alert(rule: dict[str, Any]) -> str:
    since = f" for {rule['for']}" if "for" in rule else ""
    notes = rule["annotations"]
    summary = notes["summary"].replace("{{ $labels.", "`").replace(" }}", "`")
    return (
        f"### {rule['alert']}\n\n*{rule['labels']['severity']}*{since}. {summary} {notes['action']}\n\n"
        f"```promql\n{rule['expr']}\n```\n"
    )
