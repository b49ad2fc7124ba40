"""English stemming, so that *indexing*, *indexes* and *indexed* match.

The suffix rules are Snowball's (PyStemmer's `english` algorithm). Three additions are made for search:
irregular forms map to their base (*ran* to *run*), British spelling to American (*colour*, *organise*), and a
few pairs that the rules conflate by accident are kept apart.

The input is one folded word: lower case, a to z. Anything else is returned unchanged. A stem is never shown.
"""

import re
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import Stemmer
else:
    Stemmer = LazyModule("Stemmer")

_ASCII_WORD = re.compile("[a-z]{3,}")

# Forms that no suffix rule covers, and words for which the rules are wrong. The values are final.
_FORMS = """
begin: began begun beginning beginnings
break: broke broken
bring: brought
build: built
buy: bought
catch: caught
child: children childs
choose: chose chosen choosing chooses
come: came coming comes
datum: data
deliv: delivery deliveries
die: dying died dies
discov: discovery discoveries
drive: drove driven driving drives driver drivers
eat: ate eaten
expir: expiry
fall: fell fallen
feel: felt
find: found
fly: flew flown flying flies
foot: feet
forget: forgot forgotten forgetting
freeze: froze frozen freezing freezes
give: gave given giving gives
goose: geese
grow: grew grown
half: halves
hold: held
index: indices indexes indexed indexing indexer
keep: kept
knife: knives
know: knew known
leaf: leaves
lie: lying lies
lose: lost losing loses
man: men
matrix: matrices matrixes
mouse: mice
news: news
person: people persons
pay: paid
queue: queued queuing queueing queues
quick: quickly
recov: recovery recoveries
redeliv: redelivery redeliveries
rise: rose risen rising rises
run: ran running runs runner runners
sell: sold
send: sent
series: series
sky: skies
speak: spoke spoken
species: species
spend: spent
steal: stole stolen
swim: swam swum swimming
teach: taught
tell: told
think: thought
tooth: teeth
vertex: vertices vertexes
wear: wore worn
wife: wives
win: won winning wins winner
wolf: wolves
woman: women womans
write: wrote written writing writes writer writers
analyz: analysis analyses analyse analysed analysing analyst analysts analyze analyzed analyzing
analyz: analyzes analyzer analyser analytic analytics analytical
hypothes: hypothesis hypotheses hypothesize hypothetical
crise: crisis crises
basi: basis
synthes: synthesis syntheses synthesize synthesise synthetic
thes: thesis theses
diagnos: diagnosis diagnoses diagnose diagnosed diagnosing diagnostic diagnostics
ski: skis skiing skied
univers: universe universes universal universally
university: university universities
organ: organ organs organic
organiz: organize organizes organized organizing organization organizations organizational organizer
organiz: organise organises organised organising organisation organisations organisational organiser
general: general generally generalize generalization generalise generalisation
generate: generate generates generated generating generation generations generator generators
generic: generic generics
policy: policy policies
police: police policing policed
import: import imports imported importing importer
important: important importance importantly
arbitrari: arbitrarily
easi: easily
happi: happily
heavi: heavily
necessari: necessarily
ordinari: ordinarily
primari: primarily
readi: readily
steadi: steadily
temporari: temporarily
past: past
paste: paste pastes pasted pasting
"""
_KNOWN = {
    form: base
    for base, forms in (line.split(":") for line in _FORMS.strip().splitlines())
    for form in (base, *forms.split())
}

_BRITISH = (
    (
        re.compile(
            "(arm|behavi|clam|col|endeav|fav|ferv|flav|glam|harb|hon|hum|lab|neighb|od|parl|rig|rum|sav|splend"
            "|tum|vap|vig)our"
        ),
        r"\1or",
    ),
    (re.compile("(?<=[a-z]{3})is(e|ed|es|er|ers|ing|ation|ations)$"), r"iz\1"),
    (re.compile("(?<=[a-z]{3})ys(e|ed|es|er|ers|ing)$"), r"yz\1"),
    (re.compile("(cent|fib|lit|met|theat|calib|lust|spect)re(?=s?$|d$)"), r"\1er"),
    (re.compile("(catal|dial|anal|mon|prol)ogu(?=e)"), r"\1og"),
    (re.compile("(def|lic|off|pret)ence(?=s?$)"), r"\1ense"),
    (re.compile("^(p|encyclop|orthop)ae(?=d)"), r"\1e"),
)


class _Stemmers(threading.local):
    """A stemmer for each thread, because the object is not thread-safe."""

    @cached_property
    def stem_word(self) -> Callable[[str], str]:
        """Created at the first word; without its own cache, because `tokenizer` has one."""
        stem_word: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
        return stem_word


_stemmers = _Stemmers()


def stem(word: str) -> str:
    """The stem of a folded English word; other or very short words are returned unchanged."""
    if (known := _KNOWN.get(word)) is not None:
        return known
    if not _ASCII_WORD.fullmatch(word):
        return word
    for pattern, american in _BRITISH:
        word = pattern.sub(american, word)
    return _stemmers.stem_word(word)


def keeps_prefix(word: str) -> bool:
    """True if the stem of a folded English word certainly starts with the same two letters."""
    if word in _KNOWN or word.startswith("pae"):
        return False
    # *tying* becomes *tie*, *aing* becomes *a*: only short words.
    return len(word) > 6 or not word.endswith(("ing", "ings", "ed", "eds"))
