"""Long documents whose every sentence is their own: as PDF, DOCX and Markdown, edited in known places."""

import itertools

from tests.documents import files, pdfs
from tests.documents.prose import Prose

LINE = 90


class Book:
    """Pages of paragraphs. `page` builds the same book in another format from the same words."""

    def __init__(self, pages, *, paragraphs=2, seed=5):
        prose = Prose(seed)
        self._serial = itertools.count(1)
        self.pages = [[self._own(prose) for _ in range(paragraphs)] for _ in range(pages)]
        self._prose = prose
        self._paragraphs = paragraphs

    def _own(self, prose):
        return f"Passage {next(self._serial)}. {prose.sentence()} {prose.sentence()}"

    def new_page(self):
        """A page of as many paragraphs as the others, of words that stand nowhere else."""
        return [f"Inserted {self._own(self._prose)}" for _ in range(self._paragraphs)]

    def pdf(self):
        return pdfs.make([_set(page) for page in self.pages])

    def docx(self):
        return files.word(parts=[(f"Chapter {page[0][:12]}", page) for page in self.pages])

    def markdown(self):
        chapters = ("\n\n".join([f"# Chapter {page[0][:12]}", *page]) for page in self.pages)
        return "\n\n".join(chapters).encode()


def _set(paragraphs):
    """One page of a PDF: lines of about ninety characters, a gap between paragraphs."""
    page, y = [], 740
    for paragraph in paragraphs:
        line = ""
        for word in paragraph.split():
            if len(line) + len(word) > LINE:
                page.append((9, 50, y, line))
                line, y = "", y - 11
            line += f"{word} "
        page.append((9, 50, y, line))
        y -= 24
    return page


def plain(pages, word="page"):
    """A PDF with one short line to a page: quick to make, and every page is one chunk."""
    return pdfs.make([f"This is {word} number{number}x of the plain book." for number in range(1, pages + 1)])


def mixed(pages, same):
    """As `plain`, of which the first `same` pages are pages and the others leaves."""
    words = ["page"] * same + ["leaf"] * (pages - same)
    return pdfs.make(
        [f"This is {word} number{number}x of the plain book." for number, word in enumerate(words, start=1)]
    )
