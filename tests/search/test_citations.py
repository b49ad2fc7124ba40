"""What an answer claims is checked against the sources that it cites, without understanding either."""

import time

import pytest

from holdfast.search import citations, facts
from holdfast.search.citations import Support

TOWER = "Towers\nThe Eiffel Tower is 330 metres tall. Gustave Eiffel opened it on 31 March 1889."
LEASE = "Lease\nThe term is five years. The rent is EUR 1,200 per month, payable to Dr. Miller."


def support(answer, *sources):
    return [str(each.support) for each in citations.check(answer, sources or (TOWER, LEASE)).sentences]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The Eiffel Tower is 330 metres tall [1].", "quoted"),
        ("It says “the term is five years” there [2].", "quoted"),
        ("The rent is 1200 EUR [2].", "worded"),
        ("The term is 5 years [2].", "worded"),
        ("It was opened on 1889-03-31 [1].", "worded"),
        ("It was opened on 30 March 1889 [1].", "none"),
        ("The rent is EUR 1,300 [2].", "none"),
        ("The rent is paid to Bob Smith [2].", "none"),
        ("The rent is EUR 1,200 [1].", "none"),
        ("The rent is EUR 1,200.", "none"),
        ("Whales are mammals [1].", "none"),
    ],
)
def test_a_sentence_is_supported_by_what_it_cites(answer, expected):
    """Verbatim, by its numbers, dates and names, or not at all."""
    assert support(answer) == [expected]


def test_citations_may_stand_before_or_behind_the_full_stop():
    """`tall [1].` and `tall. [1]` cite the same; `e.g.` and `Dr.` end no sentence."""
    checked = citations.check("It is tall. [1] See e.g. Dr. Miller [2][1]. And so on [3, 1]", [TOWER, LEASE])
    assert [each.cites for each in checked.sentences] == [(1,), (2, 1), (1,)]
    assert checked.unknown_citations == 1
    assert "[3" not in checked.text


def test_lists_and_repetitions_are_read_as_what_they_are():
    """The number of an item is no number to check; a sentence that was there before is left out."""
    answer = "1. The term is five years [2].\n2. The term is five years [2].\n- Rent: EUR 1,200 [2]"
    checked = citations.check(answer, [TOWER, LEASE])
    assert [each.support for each in checked.sentences] == [Support.QUOTED, Support.WORDED]
    assert checked.repeated == 1
    again = citations.check("It is tall [1]. " * 3, [TOWER])
    assert (len(again.sentences), again.repeated) == (1, 2)


def test_the_same_number_has_many_spellings():
    """Thousands may be apart, and a comma may be the point."""
    assert facts.of("1,200 or 1.200 or 1200 or 1'200").numbers == {"1200"}
    assert facts.of("3,5 and 3.50").numbers == {"3.5"}
    assert facts.of("on 3 March 2026, 2026-03-03 and 03.03.2026").dates == {(2026, 3, 3)}


def test_an_answer_of_dots_is_checked_in_linear_time():
    """Thousands of stops without an end of a sentence are looked through once."""

    def seconds(size):
        begin = time.process_time()
        citations.check("." * size + "x", ["a source"])
        return time.process_time() - begin

    assert seconds(20_000) < 1  # it was 18 seconds
