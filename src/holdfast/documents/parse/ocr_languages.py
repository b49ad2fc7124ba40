"""The languages of text recognition: which are installed, and what to say of those that are not.

Tesseract's language files come with the system (Debian: tesseract-ocr-eng, -deu, …), in one of a few folders.
"""

import re
from pathlib import Path

FOLDERS = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
# The file by which pages are turned upright.
ORIENTATION = "osd"
MOST_LANGUAGES = 8
NAME = re.compile(r"[A-Za-z]{3}[A-Za-z_]{0,20}")
MISSING = (
    "OCR has no language files for {languages}; install them (Debian: tesseract-ocr-eng for English, and"
    " tesseract-ocr-osd) or change HOLDFAST_OCR_LANGUAGES"
)


def split(languages: str) -> list[str]:
    """The languages of a setting such as `eng+deu`; ValueError for one that is none."""
    names = languages.split("+")
    if len(names) > MOST_LANGUAGES or not all(map(NAME.fullmatch, names)):
        raise ValueError("languages are names like eng or deu, joined by +, and at most 8")
    return names


def data_folder() -> str | None:
    """The folder with the language files; None if there is none."""
    return next((folder for folder in FOLDERS if Path(folder).is_dir()), None)


def missing_languages(languages: str) -> list[str]:
    """Those of the languages that have no file."""
    folder = data_folder()
    names = split(languages)
    return [name for name in names if not folder or not Path(folder, f"{name}.traineddata").is_file()]
