# ruff: noqa: RUF001 - letters that look alike are what is tested
"""What becomes of words: the table is the specification."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.search import stem, term_counts, tokenizer


@pytest.mark.parametrize(
    ("written", "terms"),
    [
        # English
        ("The cats were running", "cat run"),
        ("to be or not to be", ""),
        ("IT staff told us it works", "it staff tell work"),
        ("Don't, can't and won't", ""),
        ("the company's O'Brien", "compani brien obrien"),
        # compounds
        ("Wi-Fi and e-mail", "wi fi wifi mail email"),
        ("state-of-the-art", "state art"),
        ("getUserName HTTPServer", "get user name getusernam http server httpserver"),
        ("snake_case", "snake case snakecas"),
        ("read the file.txt", "read file txt"),
        ("U.S.A. and e.g. this", "usa eg"),
        # numbers
        ("1,000,000 rows in 3.14 s, v2", "1000000 row 3 14 s v2"),
        ("2024-05-01", "2024 05 01 20240501"),
        # letters in many forms
        ("Café NAÏVE Ångström Straße", "cafe naiv angstrom strass"),
        ("e\u0301te\u0301", "ete"),
        ("ﬁne ① ½ Ｗｉｄｅ", "fine 1 1 2 wide"),
        ("Łódź Ærø İzmir", "lodz aero izmir"),
        ("co\u00adoperate \ufeffstart", "cooper start"),
        ("l'homme d’État", "homm etat"),
        # other scripts
        ("ёлка й", "елка й"),
        ("ΟΔΌΣ οδός", "οδοσ οδοσ"),
        ("日本語 検索", "日本 本語 検索"),
        ("猫", "猫"),
        ("iPhone手机", "phone 手机"),
        ("한국어", "한국 국어"),
        ("ภาษา", "ภา าษ ษา"),
        ("हिन्दी में", "हिन्दी में"),
        ("الكِتَاب كتاب", "كتاب كتاب"),
        ("שָׁלוֹם שלום", "שלומ שלומ"),
        # nothing
        ("", ""),
        ("— … \t\n ?!", ""),
        ("\0", ""),
    ],
)
def test_words_become_terms(written, terms):
    """Case, accents, endings, stop words, compounds, numbers and scripts."""
    assert tokenizer.analyse(written) == terms.split()


def test_a_very_long_word_is_cut_and_never_taken_apart():
    """Base64 is one term, not hundreds."""
    assert tokenizer.analyse("aB" * 500) == ["ab" * 20]


def test_the_terms_of_one_text_are_bounded():
    """What follows is not indexed; a chunk is far smaller."""
    assert len(tokenizer.analyse(" ".join(f"n{n}" for n in range(7000)))) == tokenizer.MOST_TERMS


def test_no_terms_are_none_to_store():
    """The full-text index holds nothing for a text without terms."""
    assert tokenizer.joined("to be or not to be") is None
    assert tokenizer.joined("copper  tin") == "copper tin"


@given(st.text())
@example("0A𰀀")
@example("㐀")
def test_places_give_the_same_terms_as_the_analysis(written):
    """What is marked in a snippet is what was found by the index."""
    placed = list(tokenizer.matches(written, set(tokenizer.analyse(written))))
    assert {term for _, _, terms in placed for term in terms} == set(tokenizer.analyse(written))
    assert [terms for start, end, terms in placed] == [
        set(tokenizer.analyse(written[start:end])) for start, end, _ in placed
    ]
    assert not list(tokenizer.matches(written, {"a b"}))
    assert all(written[start:end] for start, end, _ in placed)
    assert all(before[1] <= after[0] for before, after in pairwise(placed))


@given(st.lists(st.text(alphabet="abcdeilmnorstuy", min_size=1, max_size=9), min_size=1, max_size=6))
def test_a_word_that_was_never_met_is_found_at_its_place(written):
    """Words that begin otherwise are not even stemmed; none that gives the term is missed."""
    text = " ".join(written)
    for term in set(tokenizer.analyse(text)):
        tokenizer._known.clear()
        matched = [text[start:end] for start, end, _ in tokenizer.matches(text, {term})]
        assert matched == [word for word in written if term in tokenizer.analyse(word)]


def test_irregular_forms_are_found_at_their_places():
    """Their stems begin otherwise: *ate* is found for *eat*."""
    tokenizer._known.clear()
    for form, base in stem._KNOWN.items():
        assert (
            list(tokenizer.matches(f"x {form} x", set(tokenizer.analyse(base))))
            or form in tokenizer.STOP_WORDS
        )
    assert list(tokenizer.matches("paediatric wards", {"pediatr"}))


@given(st.lists(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=30)))
def test_a_forgotten_spelling_is_worked_out_again_alike(written):
    """What is remembered changes the speed alone."""
    text = " ".join(written)
    first = tokenizer.analyse(text)
    tokenizer._known.clear()
    assert tokenizer.analyse(text) == first


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_case_does_not_matter_to_a_plain_word(word):
    """But for the few names that are stop words in small letters."""
    if word.upper() not in tokenizer._NAMES:
        assert (
            tokenizer.analyse(word.capitalize()) == tokenizer.analyse(word) == tokenizer.analyse(word.upper())
        )


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_words_between_spaces_are_the_words_of_the_text(text):
    """Looked up stretch by stretch or read as a whole, an ASCII text gives the same terms."""
    read = [term for raw in tokenizer._RAW_ASCII.findall(text) for term in tokenizer._known[raw]]
    assert tokenizer.analyse(text) == read


@given(st.text(alphabet="ab. -'1,\u00e9\u4e00A\n", max_size=60))
def test_what_is_kept_of_a_text_is_what_a_query_asks_for(text):
    """The same terms in the same order, by their names and by their numbers."""
    terms = tokenizer.analyse(text)
    assert tokenizer.terms_of(text) == (" ".join(terms), term_counts.numbers_of(terms).tobytes())
    assert term_counts.pack([tokenizer.terms_of(text).numbers] * 2) == term_counts.encode(
        [" ".join(terms)] * 2
    )


@pytest.mark.parametrize("text", ["n1 " * 7000, "n1,n2 " * 3500])
def test_a_text_of_too_many_terms_is_cut_alike(text):
    """The first of them are kept, whether they are looked for or stored."""
    assert tokenizer.terms_of(text).words.split(" ") == tokenizer.analyse(text)
    assert len(tokenizer.terms_of(text).numbers) == term_counts.WIDTH * tokenizer.MOST_TERMS
