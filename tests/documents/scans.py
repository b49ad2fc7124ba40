"""Scans of known text: rendered, tilted, turned, with noise, at any resolution, as pictures and as PDFs."""

import io
import random

from PIL import Image, ImageDraw, ImageFont

from tests.documents import pdfs
from tests.documents.prose import Prose

FONT = "DejaVuSans.ttf"
SERIF = "DejaVuSerif.ttf"
TYPEWRITER = "DejaVuSansMono.ttf"
# Letter paper, in inches, and the size of the text in points.
ACROSS, DOWN, SIZE = 8.5, 11, 11


def lines(seed, count=14):
    """Lines of prose that are known."""
    words = " ".join(Prose(seed).paragraphs(12)).split()
    chosen, line = [], ""
    for word in words:
        if len(line) + len(word) > 70:
            chosen.append(line.strip())
            line = ""
        line += f"{word} "
    return chosen[:count]


def picture(text, *, dpi=200, tilt=0.0, rotation=0, noise=0, seed=1, font=FONT):
    """The lines of text on a page of paper, in grey."""
    scale = dpi / 72
    page = Image.new("L", (round(ACROSS * dpi), round(DOWN * dpi)), 255)
    draw, letters = ImageDraw.Draw(page), ImageFont.truetype(font, round(SIZE * scale))
    for number, line in enumerate(text):
        draw.text((dpi, dpi + number * SIZE * 1.5 * scale), line, fill=20, font=letters)
    if tilt:
        page = page.rotate(tilt, Image.Resampling.BICUBIC, fillcolor=255)
    if noise:
        grain = Image.effect_noise(page.size, noise)
        dots = random.Random(seed)
        page = Image.blend(page, grain, 0.15)
        for _ in range(noise * 10):
            page.putpixel((dots.randrange(page.width), dots.randrange(page.height)), 0)
    return page.rotate(rotation, expand=True) if rotation else page


def encoded(image, form="PNG", **more):
    """The picture as a file."""
    file = io.BytesIO()
    image.save(file, form, **more)
    return file.getvalue()


def pdf(pages):
    """A PDF whose pages are pictures, or lists of lines, which are set as text, or pairs of both."""
    placed = [page if isinstance(page, tuple) else (None, page) for page in map(_placed, pages)]
    return pdfs.pictured([(image and _image(image), text) for image, text in placed])


def _placed(page):
    return page if isinstance(page, list | tuple) else (page, [])


def _image(page):
    return page.width, page.height, encoded(page, "JPEG", quality=85), page.mode == "L"


def recall(text, known):
    """The share of the known words that the text has, each as often as it is known."""
    left = {}
    for word in text.split():
        left[word] = left.get(word, 0) + 1
    met = 0
    words = " ".join(known).split()
    for word in words:
        if left.get(word, 0):
            left[word] -= 1
            met += 1
    return met / len(words)
