"""Foreign text costs time and memory in proportion to its length, whatever is in it."""

import re

import pytest

from tests.fuzz import growth, targets, texts

SIZE = 8 * 1024
RECIPES = texts.recipes(seed=1, count=8)
QUADRATIC = re.compile(r"(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")


def findings(measure, name):
    """What is wrong with a target, by the recipe that shows it."""
    call = targets.TARGETS[name]
    size = SIZE // 2 if measure is growth.memory_of else SIZE  # to trace memory takes long
    output = {str(recipe): measure(call, recipe.text, size)[1] for recipe in RECIPES}
    return {recipe: str(finding) for recipe, finding in output.items() if finding is not None}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_time_grows_no_faster_than_the_text(name):
    """A recogniser, parser, cutter or word splitter takes at most so many times longer as its text is."""
    assert findings(growth.time_of, name) == {}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_memory_is_a_bounded_multiple_of_the_text(name):
    """None of them holds more than some hundred bytes for each character that it is given."""
    assert findings(growth.memory_of, name) == {}


def test_a_quadratic_pattern_is_caught():
    """The pattern for headings that this test was made for is found out at half of the size used here."""
    heading = texts.Recipe("# x", " ", "y")
    assert growth.time_of(QUADRATIC.match, heading.text, SIZE // 2)[1] is not None


def test_an_exponential_pattern_is_caught(monkeypatch):
    """A search that would not end is cut off and counts as found."""
    monkeypatch.setattr(growth, "MOST_SECONDS", 0.5)
    comments = texts.Recipe("", "<!---->", "x")
    pattern = re.compile(r"(?:<!--.*?-->\s*)*<html", re.DOTALL)
    assert growth.time_of(pattern.match, comments.text, SIZE)[1] is not None


def test_time_that_begins_to_grow_late_is_linear_all_the_same():
    """What short texts are spared, and longer ones are not, is no reason to call a function quadratic."""

    def late(text):
        return sum(range(400 * len(text))) if len(text) >= SIZE else 0

    assert growth.time_of(late, texts.Recipe("", "x", "").text, SIZE)[1] is None


def test_memory_that_is_squandered_is_caught():
    """A header that is repeated in each row of its table is found out."""
    table = texts.Recipe("h" * 2000 + "\n", "1\n", "")

    def repeated(text):
        header, *rows = text.split("\n")
        return [f"{header}: {row}" for row in rows]

    assert growth.memory_of(repeated, table.text, 8 * SIZE)[1] is not None
