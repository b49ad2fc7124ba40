"""English words to stems, so that *indexing*, *indexes* and *indexed* meet.

The suffix rules of the Porter family (Porter 1980 and its successor of 2001), with three additions made for
search: irregular forms go to their base (*ran* to *run*), British spelling goes to American (*colour*,
*organise*), and a few pairs that the rules drive together by accident are kept apart.

The input is one folded word: lower case, a to z. Anything else comes back as it is. A stem is never shown.
"""

import re

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset({"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"})
_BEFORE_LI = frozenset("cdeghkmnrt")
_ASCII_WORD = re.compile("[a-z]{3,}")

# R1: what follows the first consonant after a vowel. R2: the same again within R1.
_REGION = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]")
_EARLY = re.compile("gener|commun|arsen|univers|emerg|organ|past")

# Forms that no suffix rule reaches, and words whose rule would be wrong. The values are final.
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

_STEP_2 = {
    "ization": "ize",
    "ational": "ate",
    "fulness": "ful",
    "ousness": "ous",
    "iveness": "ive",
    "tional": "tion",
    "biliti": "ble",
    "lessli": "less",
    "entli": "ent",
    "ation": "ate",
    "alism": "al",
    "aliti": "al",
    "ousli": "ous",
    "iviti": "ive",
    "fulli": "ful",
    "enci": "ence",
    "anci": "ance",
    "abli": "able",
    "izer": "ize",
    "ator": "ate",
    "alli": "al",
    "bli": "ble",
    "ili": "i",
}
_STEP_3 = {
    "ational": "ate",
    "tional": "tion",
    "alize": "al",
    "icate": "ic",
    "iciti": "ic",
    "ical": "ic",
    "ness": "",
    "ful": "",
}
# The longest first.
_STEP_4 = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive"),
    *("ize", "al", "er", "ic"),
)


def stem(word: str) -> str:
    """The stem of a folded English word; anything that is not a to z, or is very short, as it is."""
    if (known := _KNOWN.get(word)) is not None:
        return known
    if not _ASCII_WORD.fullmatch(word):
        return word
    for pattern, american in _BRITISH:
        word = pattern.sub(american, word)
    word = _mark_consonant_y(word)
    r1, r2 = _regions(word)
    word = _plural(word)
    word = _past(word, r1)
    if word[-1] in "yY" and len(word) > 2 and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _step_2(word, r1)
    word = _step_3(word, r1, r2)
    word = _step_4(word, r2)
    return _final(word, r1, r2).lower()


def keeps_its_beginning(word: str) -> bool:
    """True when the first two letters of a folded English word are surely those of its stem."""
    return word not in _KNOWN and not word.startswith("pae")


def _mark_consonant_y(word: str) -> str:
    """A y at the start or after a vowel is a consonant, and is written Y until the end."""
    if "y" not in word:
        return word
    letters = list(word)
    for at, letter in enumerate(letters):
        if letter == "y" and (at == 0 or letters[at - 1] in _VOWELS):
            letters[at] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    found = _EARLY.match(word) or _REGION.match(word)
    if found is None:
        return len(word), len(word)
    r1 = found.end()
    found = _REGION.match(word, r1)
    return r1, found.end() if found else len(word)


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and not _VOWELS.isdisjoint(word[:-2]):
        return word[:-1]
    return word


def _past(word: str, r1: int) -> str:
    """Without -ed, -ing and their adverbs; an e or a single consonant comes back where the rule took it."""
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            return word[: -len(suffix)] + "ee" if len(word) - len(suffix) >= r1 else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(suffix):
            continue
        kept = word[: -len(suffix)]
        if _VOWELS.isdisjoint(kept) or len(kept) < 2:
            return word
        if kept.endswith(("at", "bl", "iz", "yz")):
            return kept + "e"
        if kept[-2:] in _DOUBLES and not (len(kept) == 3 and kept[0] in "aeo"):
            return kept[:-1]
        return kept + "e" if _is_short(kept, r1) else kept
    return word


def _ends_short(word: str) -> bool:
    """It ends in consonant, vowel, consonant (not w, x or Y), or is vowel and consonant alone."""
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    if len(word) < 3 or word[-1] in _VOWELS or word[-1] in "wxY":
        return False
    return word[-2] in _VOWELS and word[-3] not in _VOWELS


def _is_short(word: str, r1: int) -> bool:
    return r1 >= len(word) and _ends_short(word)


def _step_2(word: str, r1: int) -> str:
    for suffix, instead in _STEP_2.items():
        if word.endswith(suffix):
            return word[: -len(suffix)] + instead if len(word) - len(suffix) >= r1 else word
    if word.endswith("ogi"):
        return word[:-1] if len(word) - 3 >= r1 and word[-4:-3] == "l" else word
    if word.endswith("li") and len(word) - 2 >= r1 and word[-3] in _BEFORE_LI:
        return word[:-2]
    return word


def _step_3(word: str, r1: int, r2: int) -> str:
    for suffix, instead in _STEP_3.items():
        if word.endswith(suffix):
            return word[: -len(suffix)] + instead if len(word) - len(suffix) >= r1 else word
    if word.endswith("ative") and len(word) - 5 >= r2:
        return word[:-5]
    return word


def _step_4(word: str, r2: int) -> str:
    if word.endswith(("sion", "tion")):
        return word[:-3] if len(word) - 3 >= r2 else word
    for suffix in _STEP_4:
        if word.endswith(suffix):
            return word[: -len(suffix)] if len(word) - len(suffix) >= r2 else word
    return word


def _final(word: str, r1: int, r2: int) -> str:
    if word.endswith("e"):
        at = len(word) - 1
        if at >= r2 or (at >= r1 and not _ends_short(word[:-1])):
            return word[:-1]
    elif word.endswith("ll") and len(word) - 1 >= r2:
        return word[:-1]
    return word
