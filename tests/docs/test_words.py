"""Every word that the code can say is explained to its readers."""

import re
from pathlib import Path

import pytest

from holdfast.core import states
from scripts import reference

DOCS = Path(__file__).resolve().parents[2] / "docs"
GLOSSARY, STATES = (DOCS / name for name in ("glossary.md", "state-machine.md"))
SECTIONS = {
    states.Status: "Status of a head and of a run",
    states.TaskState: "State of a task",
    states.CallState: "State of a call and of its order",
    states.Disposition: "Disposition: what became of your request",
    states.Skip: "Skip: why a delivery that names its task does not run",
    states.Lane: "Lanes, in the order of service",
}


def explained(page, section):
    """The words of one table: the code spans that open its rows, in order."""
    body = re.search(
        rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL
    )
    assert body, f"{page.name} has no section {section!r}"
    return re.findall(r"^\| `([^`]+)` \| .*\w.* \|$", body[1], re.MULTILINE)


@pytest.mark.parametrize("words", SECTIONS, ids=lambda words: words.__name__)
def test_the_glossary_explains_every_word_and_no_other(words):
    """A member that is added, renamed or removed changes the glossary, in the order of the code."""
    assert explained(GLOSSARY, SECTIONS[words]) == [member.value for member in words]


def test_every_verb_has_its_sentence():
    """A verb without a sentence is not a verb yet."""
    assert list(reference.VERBS) == list(states.Verb)
    assert explained(STATES, "The verbs") == [verb.value for verb in states.Verb]


@pytest.mark.parametrize("what", states.TRANSITIONS)
def test_every_transition_is_drawn(what):
    """Each edge of the table is an arrow of its diagram that carries the verb."""
    page = STATES.read_text()
    diagram = re.search(rf"^## {what.capitalize()}\n.*?```mermaid\n(.*?)```", page, re.MULTILINE | re.DOTALL)[
        1
    ]
    arrows = {
        (source, verb): {
            target for start, target, verbs in _arrows(diagram) if start == source and verb in verbs
        }
        for source, _target, verbs in _arrows(diagram)
        for verb in verbs
        if source != "[*]"
    }
    assert arrows == {key: set(targets) for key, targets in states.TRANSITIONS[what].items()}


def _arrows(diagram):
    for source, target, verbs in re.findall(r"^ +(\S+) --> (\S+) : (.+)$", diagram, re.MULTILINE):
        yield source, target, verbs.split(", ")
