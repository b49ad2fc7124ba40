"""How a collection is searched: synonyms, stop words, and who reranks. Nothing is indexed again for them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.core.languages import ENGLISH_RULES
from holdfast.core.text import is_plain
from holdfast.search import tokenizer

MOST_GROUPS = 500
MOST_IN_GROUP = 20
MOST_STOP_WORDS = 1000
MOST_WORD = 100
SYNONYMS, STOP_WORDS, RERANK = "synonyms", "stop_words", "rerank"


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Groups of words that mean the same, each word as its terms; and terms that mean nothing here."""

    groups: tuple[tuple[tuple[str, ...], ...], ...] = ()
    stop_words: frozenset[str] = frozenset()
    source: str = field(default="", compare=False, repr=False)

    def in_language(self, language: int) -> SearchRules:
        """The same rules, with the words in the form that they have in documents of this language."""
        return _read(self.source, language) if self.source and language != ENGLISH_RULES else self

    def applied(self, terms: Sequence[str]) -> tuple[str, ...]:
        """The terms of a query without stop words and with synonyms; all of them if nothing would be left."""
        left = [term for term in terms if term not in self.stop_words] or list(terms)
        having = set(left)
        more: dict[str, None] = {}
        for group in self.groups:
            if any(having.issuperset(each) for each in group):
                more |= dict.fromkeys(term for each in group for term in each if term not in having)
        return (*left, *more)


def _bad(why: str) -> BadRequestError:
    return BadRequestError(f"the search rules cannot be used: {why}", code="bad_search_rules")


def checked(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules of a request; BadRequestError `bad_search_rules` for others."""
    if unknown := sorted(set(rules) - {SYNONYMS, STOP_WORDS, RERANK}):
        raise _bad(f"there is no {unknown[0]!r:.80}; use {SYNONYMS}, {STOP_WORDS} and {RERANK}")
    rerank = rules.get(RERANK)
    if rerank is not None and not isinstance(rerank, bool) and not isinstance(rerank, str):
        raise _bad(f"{RERANK} is true, or the name of a provider")
    groups, stop_words = rules.get(SYNONYMS) or [], rules.get(STOP_WORDS) or []
    if not isinstance(groups, list) or len(groups) > MOST_GROUPS:
        raise _bad(f"{SYNONYMS} is a list of at most {MOST_GROUPS} lists of words")
    for group in groups:
        if not isinstance(group, list) or not 2 <= len(group) <= MOST_IN_GROUP:
            raise _bad(f"each of the {SYNONYMS} is a list of 2 to {MOST_IN_GROUP} words")
    if not isinstance(stop_words, list) or len(stop_words) > MOST_STOP_WORDS:
        raise _bad(f"{STOP_WORDS} is a list of at most {MOST_STOP_WORDS} words")
    for word in [*stop_words, *(each for group in groups for each in group)]:
        is_word = isinstance(word, str) and is_plain(word) and len(word) <= MOST_WORD
        if not is_word or not tokenizer.analyse(word):
            raise _bad(f"{word!r:.80} has no word that is searched for")
    complete = {SYNONYMS: groups, STOP_WORDS: stop_words, RERANK: rerank}
    return {name: value for name, value in complete.items() if value}


def read(rules: Mapping[str, Any] | None) -> SearchRules | None:
    """The stored rules in the form that queries need; None for none."""
    return _read(json.dumps(rules, sort_keys=True), ENGLISH_RULES) if rules else None


@functools.lru_cache(1000)
def _read(text: str, language: int) -> SearchRules:
    rules = json.loads(text)

    def terms(word: str) -> tuple[str, ...]:
        return tuple(tokenizer.analyse(word, language=language))

    groups = [[terms(word) for word in group] for group in rules.get(SYNONYMS, ())]
    stop_words = frozenset(term for word in rules.get(STOP_WORDS, ()) for term in terms(word))
    # A word that carries only grammar in this language has no terms, and would be in every query.
    return SearchRules(tuple(tuple(filter(None, group)) for group in groups), stop_words, text)
