"""The expressions that are delivered: those of the alert rules and of the dashboard, and what they name."""

import json
import re
from pathlib import Path

from scripts import alert_reference

DASHBOARD = Path(__file__).resolve().parents[2] / "deploy/grafana/holdfast.json"
METRIC = re.compile(r"\bholdfast_\w+")
SELECTOR = re.compile(r"\b(holdfast_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")


def of_rules() -> dict[str, str]:
    """By the name of the alert or the recorded series."""
    return {rule.get("alert") or rule["record"]: rule["expr"] for rule in alert_reference.rules()}


def of_dashboard() -> dict[str, str]:
    """By the title of the panel, and the number of the expression in it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return {
        f"{panel['title']} {number}": target["expr"]
        for panel in panels
        for number, target in enumerate(panel.get("targets", ()))
    }


def everything() -> dict[str, str]:
    """All of them."""
    return of_rules() | of_dashboard()


def metrics(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    return set(METRIC.findall(expression))


def labels(expression: str) -> set[tuple[str, str]]:
    """The pairs of metric and label that an expression selects by."""
    return {
        (name, label) for name, selector in SELECTOR.findall(expression) for label in LABEL.findall(selector)
    }
