"""Draws words for thumbnails: with a font that has all their letters, or as a grey bar of about their length.

Pillow includes one font with the letters of English. Fonts of the system are used if they have the letters. A
script without a font is drawn as bars, as designers draw placeholder text: empty boxes would say less.
"""

import functools
import math
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import ImageDraw, ImageFont, features

FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts")
MOST_FILES, MOST_FACES = 4000, 12
LONGEST_WORD, MOST_MARKS = 1000, 2
BAR = (206, 210, 214)

Face = ImageFont.FreeTypeFont
Colour = tuple[int, int, int]

# Of the system's fonts, upright text fonts come first: their names start like this.
_PREFERRED = ("dejavusans.", "notosans-regular", "liberationsans-regular", "notosanscjk", "notosans", "wqy")
_UNFIT = ("bold", "italic", "oblique", "mono", "condensed", "light", "black", "thin", "emoji", "math", "icon")
# Punctuation that the built-in font lacks, and its substitutes.
_TYPED = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2013\u2014\u2212\u2022\u00b7", "-")
    | {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "«": '"', "»": '"', "„": '"', "€": "EUR"}
)


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a run of words."""

    size: int
    bold: bool = False
    colour: Colour = (52, 58, 66)
    mono: bool = False

    @property
    def leading(self) -> int:
        """The distance from one line to the next."""
        return round(self.size * 1.42)


@dataclass(frozen=True, slots=True)
class DrawnWord:
    """A word with its font; without one it is drawn as a bar. `width` is in pixels."""

    text: str
    face: Face | None
    width: float
    rtl: bool = False
    glued: bool = False  # no space before it


@functools.cache
def _files() -> tuple[str, ...]:
    """The system's font files suitable for text, preferred first; deterministic."""
    fit = [path for folder in FOLDERS for path in _listed(folder) if not _has(path, _UNFIT)]
    return tuple(sorted(fit, key=lambda path: (_rank(path), path)))


def _listed(folder: str) -> Iterator[str]:
    seen = 0
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                return
            if name.lower().endswith((".ttf", ".otf", ".ttc")):
                yield str(Path(parent, name))


def _has(path: str, words: tuple[str, ...]) -> bool:
    name = Path(path).name.lower()
    return any(word in name for word in words)


def _rank(path: str) -> int:
    name = Path(path).name.lower()
    return next((rank for rank, start in enumerate(_PREFERRED) if name.startswith(start)), len(_PREFERRED))


@functools.cache
def built_in(size: int) -> Face:
    """The font included in Pillow."""
    face = ImageFont.load_default(size)
    if not isinstance(face, ImageFont.FreeTypeFont):
        raise TypeError("Pillow was built without FreeType")
    return face


@functools.lru_cache(maxsize=MOST_FACES)
def _loaded(path: str, size: int) -> Face | None:
    try:
        return ImageFont.truetype(path, size)
    except (OSError, ValueError):  # not a font after all
        return None


@functools.lru_cache(maxsize=8192)
def _drawable(path: str, letter: str) -> bool:
    """True if the font has a glyph for the letter other than its missing-glyph box."""
    face = _face(path, 12)
    if face is None:
        return False
    # A noncharacter has no glyph in any font; both are rendered without shaping and compared.
    pictures = [_picture(face, each) for each in (letter, "\uffff")]
    return pictures[0] != pictures[1]


def _picture(face: Face, letter: str) -> tuple[tuple[int, int], bytes]:
    mask = face.getmask(letter)
    return mask.size, bytes(mask)


def _face(path: str, size: int) -> Face | None:
    return _loaded(path, size) if path else built_in(size)


def _draws(path: str, letters: str) -> bool:
    return all(letter.isspace() or _ignored(letter) or _drawable(path, letter) for letter in letters)


def _ignored(letter: str) -> bool:
    return unicodedata.category(letter) in {"Mn", "Me", "Cf"}


def clean(text: str) -> str:
    """The text without control characters and without excessive marks on one letter."""
    letters: list[str] = []
    marks = 0
    for letter in text:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in {"Mn", "Me"} else 0
        if marks <= MOST_MARKS and (letter.isspace() or kind not in {"Cc", "Cs", "Co", "Cn"}):
            letters.append(letter)
    return "".join(letters)


def is_rtl(text: str) -> bool:
    """True if the first letter with a direction is right-to-left."""
    for letter in text:
        direction = unicodedata.bidirectional(letter)
        if direction in {"L", "R", "AL"}:
            return direction != "L"
    return False


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in {"W", "F"}


def split(text: str) -> Iterator[tuple[str, bool]]:
    """Words, and single letters of scripts without spaces: a line may break after each.

    Each comes with whether it follows the previous one without a space.
    """
    for part in text.split():
        start, glued = 0, False
        for at, letter in enumerate(part):
            if _is_wide(letter) or at - start >= LONGEST_WORD:
                if at > start:
                    yield part[start:at], glued
                    glued = True
                start = at
                if _is_wide(letter):
                    yield letter, glued
                    start, glued = at + 1, True
        if start < len(part):
            yield part[start:], glued


class Typeface:
    """The fonts for one document: the built-in one if it has every letter, or else system fonts."""

    def __init__(self, sample: str) -> None:
        letters = "".join(sorted({letter for letter in sample if not letter.isspace()}))
        self._paths: list[str] = [""]
        if not _draws("", letters):
            missing = [letter for letter in letters if not _ignored(letter) and not _drawable("", letter)]
            self._paths = [*self._system(missing), ""]
        self._words: dict[tuple[str, int, bool, bool], DrawnWord] = {}

    @staticmethod
    def _system(missing: list[str]) -> list[str]:
        """A few files that together have as many of these letters as possible."""
        chosen: list[str] = []
        for path in _files()[:MOST_FACES]:
            if not missing:
                break
            rest = [letter for letter in missing if not _drawable(path, letter)]
            if len(rest) < len(missing):
                chosen.append(path)
                missing = rest
        return chosen

    def word(self, text: str, style: Style, *, glued: bool = False) -> DrawnWord:
        """The word, measured."""
        key = (text, style.size, style.bold, glued)
        if key not in self._words:
            self._words[key] = self._measured(text, style, glued=glued)
        return self._words[key]

    def _measured(self, text: str, style: Style, *, glued: bool) -> DrawnWord:
        rtl = is_rtl(text)
        for spelled in dict.fromkeys((text, _folded(text))):
            for path in self._paths:
                if not _draws(path, spelled) or (_needs_shaping(spelled) and not features.check("raqm")):
                    continue
                face = _face(_bold(path) if style.bold else _mono(path) if style.mono else path, style.size)
                if face is not None:
                    return DrawnWord(spelled, face, math.ceil(face.getlength(spelled)), rtl, glued)
        across = sum(1.0 if _is_wide(letter) else 0.52 for letter in text if not _ignored(letter))
        return DrawnWord(text, None, max(1.0, across * style.size), rtl, glued)

    def space(self, style: Style) -> float:
        """The width of the space between two words."""
        return max(2, round(style.size * 0.31))


def _needs_shaping(text: str) -> bool:
    """True for scripts whose letters change with their neighbours, such as Arabic."""
    return any(unicodedata.bidirectional(letter) == "AL" or "\u0900" <= letter <= "\u109f" for letter in text)


def _folded(text: str) -> str:
    """The word in unaccented Latin letters, as far as possible."""
    parts = unicodedata.normalize("NFKD", text.translate(_TYPED))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


@functools.cache
def _bold(path: str) -> str:
    """The bold font beside this one, or this one."""
    return _beside(path, "Bold")


@functools.cache
def _mono(path: str) -> str:
    """The monospaced font of the same family, or this one."""
    return _beside(path, "Mono")


def _beside(path: str, other: str) -> str:
    if not path:
        return path
    stem = Path(path).stem.removesuffix("-Regular")
    names = {"Bold": (f"{stem}-Bold",), "Mono": (f"{stem}Mono", f"{stem}Mono-Regular")}[other]
    candidates = (Path(path).with_name(f"{name}{Path(path).suffix}") for name in names)
    return next((str(candidate) for candidate in candidates if candidate.exists()), path)


def draw_word(draw: ImageDraw.ImageDraw, at: tuple[float, float], word: DrawnWord, style: Style) -> None:
    """Draw the word with the left end of its baseline at `at`."""
    left, base = at
    if word.face is None:
        top = base - max(2, round(style.size * 0.52))
        draw.rectangle((round(left), top, round(left + word.width) - 1, base - 1), fill=BAR)
        return
    # Without a bold font, draw a little thicker.
    thick = 0.35 if style.bold and "Bold" not in str(word.face.getname()[1]) else 0
    draw.text((left, base), word.text, fill=style.colour, font=word.face, anchor="ls", stroke_width=thick)
