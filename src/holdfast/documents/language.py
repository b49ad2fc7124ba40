# ruff: noqa: RUF001 - letters of many scripts are what this module is about
"""The language of a text, told by its script, its letters and its commonest words.

Only a sample of bounded size is looked at, so a long text takes no longer than a short one. A text that is
too short, or is no prose, has no language that could be told: None.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from holdfast.core.function_words import FUNCTION_WORDS

SAMPLE = 24_000  # characters
_WINDOWS = 12
_PIECE = 60
LEAST_SCORE = 1.2  # of function words, each worth less the more languages have it
LEAST_SHARE = 0.06  # of function words among all
LEAST_LEAD = 1.2  # over the second best
_OWN_LETTER = 0.35  # worth of a word with a letter that few languages have
_FEW_LETTERS = 4

# Marks are part of a word: in Devanagari and Tamil they are its vowels.
_WORD = re.compile(
    r"(?:[^\W\d_]|[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0b82\u0bbe-\u0bcd\u200c'’\-])+"
)
# So near to each other that either rules do for both.
_SIBLINGS = {"da": "no", "no": "da"}
# First code point, last, what is written in that script, and what a character of it counts beside a letter:
# one of Han says as much as a short word.
_SCRIPTS = (
    (0x0041, 0x024F, "latin", 1),
    (0x1E00, 0x1EFF, "latin", 1),
    (0x0370, 0x03FF, "el", 1),
    (0x1F00, 0x1FFF, "el", 1),
    (0x0400, 0x052F, "cyrillic", 1),
    (0x0530, 0x058F, "hy", 1),
    (0x0590, 0x05FF, "he", 1),
    (0x0600, 0x06FF, "arabic", 1),
    (0x0750, 0x077F, "arabic", 1),
    (0xFB50, 0xFDFF, "arabic", 1),
    (0xFE70, 0xFEFC, "arabic", 1),
    (0x0900, 0x097F, "devanagari", 1),
    (0x0B80, 0x0BFF, "ta", 1),
    (0x0E00, 0x0E7F, "th", 1),
    (0x0E80, 0x0EFF, "lo", 1),
    (0x1000, 0x109F, "my", 1),
    (0x1100, 0x11FF, "ko", 3),
    (0xAC00, 0xD7AF, "ko", 3),
    (0x1780, 0x17FF, "km", 1),
    (0x3041, 0x30FF, "kana", 3),
    (0x3400, 0x4DBF, "han", 3),
    (0x4E00, 0x9FFF, "han", 3),
    (0xF900, 0xFAFF, "han", 3),
    (0x20000, 0x3FFFF, "han", 3),
)
_KANA_SHARE = 0.05  # of kana and Han, from which on a text is Japanese
_CANDIDATES = {
    "latin": (
        *(
            "en",
            "de",
            "fr",
            "es",
            "it",
            "pt",
            "nl",
            "sv",
            "da",
            "no",
            "fi",
            "pl",
            "cs",
            "ro",
            "hu",
            "tr",
            "id",
        ),
        *("vi", "ca", "eu", "ga", "lt", "et", "eo"),
    ),
    "cyrillic": ("ru", "uk", "bg", "sr"),
    "arabic": ("ar", "fa"),
    "devanagari": ("hi", "ne"),
}
_LETTERS = {
    "de": "ß",
    "fr": "œùûëïî",
    "es": "ñ¿",
    "pt": "ãõ",
    "sv": "",
    "da": "æø",
    "no": "æø",
    "pl": "łąęśźżńć",
    "cs": "řěůčž",
    "ro": "ășțâ",
    "hu": "őű",
    "tr": "ğışç",
    "vi": "ơưđạảấầậắằặẹẻẽếềệịọỏốồộớờợụủứừựỳ",
    "ca": "ŀ",
    "lt": "ėįųūčšž",
    "et": "õ",
    "eo": "ĉĝĥĵŝŭ",
    "ru": "ыэё",
    "uk": "іїєґ",
    "bg": "ъ",
    "sr": "ђјљњћџ",
    "fa": "پچژگکی",
    "ar": "ةىكي",
}


def _shared() -> dict[str, dict[str, float]]:
    """By script, what each word is worth for each language."""
    worth: dict[str, dict[str, float]] = {}
    for script, codes in _CANDIDATES.items():
        having = Counter(word for code in codes for word in FUNCTION_WORDS[code])
        worth[script] = {word: 1.0 / number for word, number in having.items()}
    return worth


_WORTH = _shared()
_OWN_LETTERS = {code: frozenset(letters) for code, letters in _LETTERS.items() if letters}


def detect(texts: Iterable[str]) -> str | None:
    """The language in which these texts are written, as its code; None if it cannot be told."""
    text = _sample(texts)
    scripts = _scripts(text)
    kana, east_asian = scripts["kana"], scripts["kana"] + scripts["han"]
    if scripts.total() < _FEW_LETTERS:
        return None
    ((script, most),) = scripts.most_common(1)
    if east_asian >= most:
        return "ja" if kana > _KANA_SHARE * east_asian else "zh"
    return _by_words(text, script) if script in _CANDIDATES else script


def _sample(texts: Iterable[str]) -> str:
    """The text itself if it is short, otherwise windows from all of it."""
    whole = "\n".join(texts)
    if len(whole) > SAMPLE:
        size, step = SAMPLE // _WINDOWS, len(whole) // _WINDOWS
        whole = "\n".join(whole[start : start + size] for start in range(0, step * _WINDOWS, step))
    # Normalisation sorts the marks of one letter in quadratic time: a short piece has few.
    pieces = (whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE))
    return whole if whole.isascii() else "".join(unicodedata.normalize("NFC", each) for each in pieces)


def _scripts(text: str) -> Counter[str]:
    """How much of the text is in each script."""
    scripts: Counter[str] = Counter()
    for letter, number in Counter(text).items():
        if letter.isalpha() or unicodedata.category(letter) in {"Mn", "Mc"}:
            code = ord(letter)
            for low, high, script, worth in _SCRIPTS:
                if low <= code <= high:
                    scripts[script] += number * worth
                    break
    return scripts


def _by_words(text: str, script: str) -> str | None:
    words = Counter(match.group().lower().replace("’", "'") for match in _WORD.finditer(text))
    scores = {code: _score(code, words, _WORTH[script]) for code in _CANDIDATES[script]}
    best, score = max(scores.items(), key=lambda item: item[1])
    second = max(other for code, other in scores.items() if code not in {best, _SIBLINGS.get(best)})
    total = words.total()
    if score < LEAST_SCORE or score < LEAST_SHARE * total or score < LEAST_LEAD * second:
        return None
    return best


def _score(code: str, words: Counter[str], worth: dict[str, float]) -> float:
    common, own = FUNCTION_WORDS[code], _OWN_LETTERS.get(code, frozenset())
    score = sum(worth[word] * number for word, number in words.items() if word in common)
    if own:
        score += _OWN_LETTER * sum(number for word, number in words.items() if not own.isdisjoint(word))
    return score
