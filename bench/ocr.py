"""Measures text recognition beside bare Tesseract: the same pictures, the same language and resolution.

    python -m bench.ocr [--pages N] [--repeats N] [--strict]

Ours opens a PDF of scans in the limited parser process, renders each page, recognises it, finds paragraphs
and boxes, and sends the result to its parent. Bare Tesseract gets the grey pictures ready in memory. Measured
is processor time, in turns, so that a busy machine does not decide.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_THREAD_LIMIT"] = "1"  # read when Tesseract is loaded; ours has one thread, too

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import tesserocr

from holdfast.documents.parse import page_quality
from holdfast.documents.parse.ocr_languages import data_folder
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import DPI, Format
from tests.documents import scans

TARGET = 1.2
LANGUAGES = "eng"


def main(words: Sequence[str]) -> int:
    """The exit code: 0, also on a miss, unless --strict."""
    parser = argparse.ArgumentParser(prog="bench.ocr", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pages", type=int, default=6, help="how many pages")
    parser.add_argument("--repeats", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when the target is missed")
    options = parser.parse_args(words)
    ratios, ours, bare = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scans.pdf")
        pages = range(1, options.pages + 1)
        path.write_bytes(scans.pdf([scans.picture(scans.lines(seed, 40), tilt=0.5) for seed in pages]))
        for _ in range(options.repeats):
            ours.append(_ours(path, pages) / options.pages)
            bare.append(_bare(path, pages) / options.pages)
            ratios.append(ours[-1] / bare[-1])
    ratio = statistics.median(ratios)
    print(
        f"{options.pages} pages at {DPI} dpi, {options.repeats} repeats, processor seconds a page (medians)"
    )
    print(f"  Holdfast, in the parser process  {statistics.median(ours):.2f}")
    print(f"  bare tesserocr                   {statistics.median(bare):.2f}")
    print(f"  ratio {ratio:.2f} ({min(ratios):.2f}-{max(ratios):.2f}), at most {TARGET}")
    return 1 if options.strict and ratio > TARGET else 0


def _ours(path: Path, pages: Sequence[int]) -> float:
    """Processor time of parent and child, after a first page that loads the language."""
    parser = Parser()
    parser.recognise(path, Format.PDF, pages[0], LANGUAGES)
    child: Any = parser._child  # noqa: SLF001 (its process is what is measured)
    start = time.process_time() + _seconds_of(child._process.pid)  # noqa: SLF001
    for page in pages:
        assert parser.recognise(path, Format.PDF, page, LANGUAGES).words
    used = time.process_time() + _seconds_of(child._process.pid) - start  # noqa: SLF001
    parser.close()
    return used


def _seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bare(path: Path, pages: Sequence[int]) -> float:
    document = pdfium.PdfDocument(path)
    pictures = [page_quality.grey(document[number - 1]) for number in pages]
    with tesserocr.PyTessBaseAPI(path=data_folder(), lang=LANGUAGES, psm=tesserocr.PSM.AUTO_OSD) as engine:
        _text(engine, pictures[0])
        start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        for picture in pictures:
            assert _text(engine, picture)
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - start


def _text(engine: Any, picture: Any) -> str:
    engine.SetImageBytes(picture.tobytes(), picture.width, picture.height, 1, picture.width)
    engine.SetSourceResolution(DPI)
    return str(engine.GetUTF8Text())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
