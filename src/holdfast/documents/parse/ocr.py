"""Text recognition (OCR) of the picture of a page by Tesseract, in the parser process.

Tesseract runs as a library: no program is started and no temporary file is written, so that the limits and
the sandbox of the process hold for it, too. The languages are loaded with the first page and stay loaded.
"""

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse.ocr_languages import MISSING, ORIENTATION, data_folder, missing_languages
from holdfast.documents.parse.page_tilt import LevelPicture
from holdfast.documents.parse.records import RecognisedPage, RecognisedWord, Role, TextBlock

# A line whose letters are so much taller than those of most lines is a heading.
HEADING = 1.5
LONGEST_HEADING = 160
# Paper with no more contrast than this has nothing on it.
BLANK = 6


@dataclass(slots=True)
class _Line:
    """A line of recognised words: their texts, and the height of the tallest."""

    words: list[str] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)


class Recogniser:
    """Recognises pages in one set of languages at a time."""

    def __init__(self) -> None:
        self._languages = ""
        self._engine: Any = None

    def recognise(self, picture: Any, languages: str, dpi: int) -> RecognisedPage:
        """The text of a picture, which is a grey image of Pillow."""
        if _is_blank(picture):
            return RecognisedPage(100, (), (), blank=True)
        engine = self._loaded(languages)
        level = LevelPicture(picture)
        image = level.image
        engine.SetImageBytes(image.tobytes(), image.width, image.height, 1, image.width)
        engine.SetSourceResolution(dpi)
        engine.Recognize()
        paragraphs, words = _read(engine, level)
        confidence = engine.MeanTextConf() if words else 0
        engine.Clear()
        return RecognisedPage(min(100, max(0, int(confidence))), tuple(_blocks(paragraphs)), tuple(words))

    def _loaded(self, languages: str) -> Any:
        if self._engine is not None and self._languages == languages:
            return self._engine
        lacking = missing_languages(languages)
        folder = data_folder()
        if lacking or folder is None:
            raise WorkError(MISSING.format(languages=", ".join(lacking)), code="ocr_missing")
        # Read when the library is loaded: a thread could not be started here.
        os.environ["OMP_THREAD_LIMIT"] = "1"
        import tesserocr  # noqa: PLC0415 (an extra)

        if self._engine is not None:
            self._engine.End()
        upright = Path(folder, f"{ORIENTATION}.traineddata").exists()
        mode = tesserocr.PSM.AUTO_OSD if upright else tesserocr.PSM.AUTO
        # Its messages go to standard error; by default it opens a file for them, which the sandbox refuses.
        engine = tesserocr.PyTessBaseAPI(init=False)
        engine.SetVariable("debug_file", "")
        engine.Init(path=folder, lang=languages)
        engine.SetPageSegMode(mode)
        self._engine = engine
        self._languages = languages
        return self._engine


def _is_blank(picture: Any) -> bool:
    """True for paper without anything on it, by its contrast at a low resolution."""
    small = picture.resize((max(1, picture.width // 8), max(1, picture.height // 8)))
    lowest, highest = small.getextrema()
    return bool(highest - lowest <= BLANK)


def _read(engine: Any, picture: LevelPicture) -> tuple[list[list[_Line]], list[RecognisedWord]]:
    """The lines of each paragraph, and all words with their boxes."""
    import tesserocr  # noqa: PLC0415 (loaded by now)

    level = tesserocr.RIL
    paragraphs: list[list[_Line]] = []
    words: list[RecognisedWord] = []
    position = engine.GetIterator()
    if position is None:
        return paragraphs, words
    while True:
        if not position.Empty(level.WORD):
            if position.IsAtBeginningOf(level.PARA) or not paragraphs:
                paragraphs.append([])
            if position.IsAtBeginningOf(level.TEXTLINE) or not paragraphs[-1]:
                paragraphs[-1].append(_Line())
            text = " ".join(plain(position.GetUTF8Text(level.WORD)).split())
            box = position.BoundingBox(level.WORD) or (0, 0, 0, 0)
            left, top, right, bottom = box
            if text:
                line = paragraphs[-1][-1]
                line.words.append(text)
                line.heights.append(min(right - left, bottom - top) if len(text) < 2 else bottom - top)
                words.append(RecognisedWord(text, *picture.on_the_page(box)))
        if not position.Next(level.WORD):
            return paragraphs, words


def _blocks(paragraphs: Sequence[Sequence[_Line]]) -> Iterator[TextBlock]:
    """Paragraphs and headings; words hyphenated at the end of a line are joined."""
    heights = [height for lines in paragraphs for line in lines for height in line.heights]
    usual = statistics.median(heights) if heights else 0
    for lines in paragraphs:
        text = _joined([" ".join(line.words) for line in lines if line.words])
        if not any(map(str.isalnum, text)):
            continue
        tall = min(statistics.median(line.heights) for line in lines if line.heights)
        if tall >= HEADING * usual and len(text) <= LONGEST_HEADING and len(paragraphs) > 1:
            yield TextBlock(Role.HEADING, text, 2)
        else:
            yield TextBlock(Role.PARAGRAPH, text)


def _joined(lines: Sequence[str]) -> str:
    text = ""
    for line in lines:
        if text.endswith("-") and text[-2:-1].islower() and line[:1].islower():
            text = text[:-1] + line
        else:
            text = f"{text} {line}" if text else line
    return text
