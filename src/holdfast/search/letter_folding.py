# ruff: noqa: RUF001 - letters that look alike are what this table is about
"""Folds variants of a letter: accents, widths, ligatures, pointed and final forms, by script.

`fold` works one code point at a time, computed at first use and then looked up by `str.translate`. Latin and
Greek lose their accents; Arabic and Hebrew their points and letter variants; Cyrillic only the dots of ё,
because й and и are different letters; everything else stays as it is.
"""

import re
import unicodedata

# Marks are part of a word: Indic vowel signs are marks, and so is a decomposed accent.
_MARK_BLOCKS = (
    range(0x0300, 0x1D00),
    range(0x1DC0, 0x1E00),
    range(0x20D0, 0x2100),
    range(0x3099, 0x309B),
    range(0xA66F, 0xAC00),
    range(0xFB1E, 0xFB1F),
    range(0xFE20, 0xFE30),
)
MARKS = "".join(
    chr(code) for block in _MARK_BLOCKS for code in block if unicodedata.category(chr(code)) in {"Mn", "Mc"}
)

# Invisible inside a word: the soft hyphen, the joiners, the mark at the start of a file.
INVISIBLE = "\u00ad\u200c\u200d\u2060\ufeff"
_VANISH = str.maketrans("", "", INVISIBLE)

# Written without spaces between words: cut into overlapping pairs.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af\u1100-\u11ff"  # Hangul
)
# More marks on one letter than any script has. Normalisation sorts them in quadratic time: a hundred thousand
# took minutes.
_MANY_MARKS = re.compile(f"([{MARKS}]{{30}})[{MARKS}]+")
UNSPACED = re.compile(f"[{_UNSPACED}]+")

# Letters that have no decomposition.
_SAME = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "ł": "l",
    "đ": "d",
    "ð": "d",
    "þ": "th",
    "ħ": "h",
    "ı": "i",
    "ŋ": "n",
    "ŧ": "t",
    "ё": "е",
    "أ": "ا",
    "إ": "ا",
    "آ": "ا",
    "ٱ": "ا",
    "ى": "ي",
    "ی": "ي",
    "ک": "ك",
    "ة": "ه",
    "\u0640": "",  # tatweel only stretches a word
    "ך": "כ",
    "ם": "מ",
    "ן": "נ",
    "ף": "פ",
    "ץ": "צ",
}
_ACCENTED = (range(0x00C0, 0x0250), range(0x0370, 0x0400), range(0x1E00, 0x2000))
_POINTS = (range(0x0300, 0x0370), range(0x0591, 0x05C8), range(0x0610, 0x061B), range(0x064B, 0x0660))
_ARTICLES = re.compile("^(?:وال|بال|كال|فال|ال|لل)(?=.{3})")


class _Fold(dict[int, str | None]):
    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        folded: str | None = letter
        if letter in _SAME:
            folded = _SAME[letter]
        elif any(code in block for block in _POINTS) and unicodedata.category(letter) == "Mn":
            folded = None
        elif any(code in block for block in _ACCENTED):
            split = unicodedata.normalize("NFKD", letter)
            folded = "".join(part for part in split if unicodedata.category(part) != "Mn")
        self[code] = folded
        return folded


_FOLD = _Fold()


def fold(text: str) -> str:
    """The text in one case and one form of each letter; for matching only, never shown."""
    return text.lower() if text.isascii() else composed(text).translate(_FOLD)


def composed(text: str) -> str:
    """The text in one case and in composed form, with its accents."""
    if len(text) > 30:
        text = _MANY_MARKS.sub(r"\1", text)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def visible(text: str) -> str:
    """The text without invisible characters inside words."""
    return text if text.isascii() else text.translate(_VANISH)


def without_article(word: str) -> str:
    """An Arabic word without its joined article; any other word as it is."""
    return _ARTICLES.sub("", word) if "\u0600" <= word[:1] <= "\u06ff" else word
