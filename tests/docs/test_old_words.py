"""Words that the house gives up are counted, and their number only falls."""

import ast
from collections import Counter
from pathlib import Path

from scripts import words

SOURCE = Path(__file__).parents[2] / "src/holdfast"


def test_a_word_above_its_bound_is_named():
    """One more than the list allows fails and says where; a word without a bound may not occur at all."""
    left = Counter({("src", "found"): 3, ("docs", "the page"): 1})
    complaints = words.compare(left, {("src", "found"): 2})
    assert [line.split(":")[0] for line in complaints] == ["docs", "src"]
    assert "`found` 3 times, at most 2" in complaints[1]


def test_a_bound_far_above_its_count_must_be_lowered():
    """A few less need no new list, so that two people do not edit it at once; a clean-up does."""
    few, many = Counter({("src", "told"): 96}), Counter({("src", "told"): 50})
    assert words.compare(few, {("src", "told"): 100}) == []
    assert "--lower" in words.compare(many, {("src", "told"): 100})[0]


def test_names_are_counted_where_they_are_bound():
    """Assignments and parameters count; uses of the same name do not, nor does a key of a dictionary."""
    tree = ast.parse("def f(told):\n    found = told\n    return {'made': found}\nclass Parts: ...\n")
    assert sorted(words._of_code("once", tree)) == ["class:Parts", "found", "once.py", "told"]


def test_a_phrase_is_counted_across_the_end_of_a_line():
    """Wrapping a sentence hides no phrase."""
    assert list(words._of_text("Look at the\n    page, which is away.")) == ["the page", "is away"]


def test_lowering_never_raises_a_bound(tmp_path, monkeypatch):
    """Bounds above today's counts fall to them, words that are gone go, and a bound below stays broken."""
    listed = tmp_path / "words.txt"
    listed.write_text("# comment\n    9 src   found\n    1 src   told\n    4 docs  the page\n")
    monkeypatch.setattr(words, "BOUNDS", listed)
    monkeypatch.setattr(words, "counts", lambda: Counter({("src", "found"): 5, ("src", "told"): 2}))
    words.lower()
    assert listed.read_text() == "# comment\n    5 src   found\n    1 src   told\n"


def test_a_public_class_has_a_name_of_its_own():
    """Whoever looks for a class by its name finds one."""
    trees = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [name for name, times in Counter(names).items() if times > 1 and not name.startswith("_")] == []
