# ruff: noqa: RUF001 - characters that look alike are what some pieces are about
"""Hostile texts of any length: a few nasty pieces, repeated until the text is long enough."""

import random
from dataclasses import dataclass

PIECES = (
    *("a", "x", "A", "1", "é", "中", "ｱ", "😀", "ا", "の", "ß", "ŉ", "\u0e01", "\u0300", "\u0316", "\u0344"),
    *(" ", "\t", "\n", "\n\n", "\f", "\u00a0", "\u2028", "\x0b", "\r\n", "\x85", "\u200d", "\ufeff", "\x00"),
    *(".", ",", "!", "?", "'", '"', "’", "-", "_", ":", ";", "。", "」", "…", "(", ")", "[", "]", "](", "{"),
    *("#", "# ", " #", "###### ", "|", "| ", " |", "|-", ":-:", "-", "- ", "* ", "+ ", "_ ", "= ", "> ", "`"),
    *("```", "~~~", "---", "===", "1. ", "1) ", "![", "[a](", "[a](b)", "title:", "title: '", "---\n"),
    *("<", ">", "</", "<p", "<p ", "<p>", "</p>", "<li>", "<li> ", "<div>", "<div ", "<b>", "<!--", "-->"),
    *("<!---->", "<!-->", "<?xml", "<?xml>", "<html", "<!doctype ", "<meta ", "charset=", "<table>", "<tr>"),
    *(
        "<td>",
        "<th>",
        "<td><table>",
        "<ul>",
        "<pre>",
        "<h1>",
        "&amp;",
        "&#0;",
        "hidden ",
        "<svg>",
        "<template>",
    ),
    *("a,", "1,000", "1,", ",000", "a.b", "a-b", "don't", "l'", "camelCase", "HTTPServer", "ies", "ational"),
    *(
        "$1",
        "1 2",
        "a@b.c",
        "http://",
        "12.3.2024",
        "May 1, ",
        "encoding='",
        "is ",
        " is a ",
        "a\tb\t",
        "q;w;e\n",
    ),
    *(
        "a|b|c\n",
        "|a|b|\n|-|-|\n",
        "- y\n\n",
        "# x\n\n",
        "a: b\n",
        "0x",
        "ing ",
        "aeiou",
        "bcd",
        "y",
        "%PDF-",
    ),
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A text of any length: `head`, then `middle` again and again, then `tail`."""

    head: str
    middle: str
    tail: str

    def text(self, size: int) -> str:
        """The text with about `size` characters in its middle."""
        return self.head + self.middle * max(1, size // len(self.middle)) + self.tail


# What has once been slow.
KNOWN = (
    Recipe("", "<!---->", "x"),
    Recipe("# x\n\n- y\n\n", "[", ""),
    Recipe("# x\n\n- y\n\n", "[a](", ""),
    Recipe("# x", " ", "y"),
    Recipe("# x", " #", " y"),
    Recipe("a|b\n", " ", "x"),
    Recipe("a|b\n| ", " ", "x"),
    Recipe("a|b\n", "-|", "x"),
    Recipe("---\ntitle: x", " ", "y\n---\ntext"),
    Recipe("<p ", "<p ", ""),
    Recipe("<html><li>", " <div>", ""),
    Recipe("<html><meta charset=", " ", "<"),
    Recipe("<html>", "<table><tr><td>", "x"),
    Recipe("a", "\u0300\u0316", ""),
    Recipe("a", "\u0344\u0316", "b"),
    Recipe("- ", "- ", "x"),
    Recipe("", ". ", ""),
    Recipe("", "run ", ""),
    Recipe("|" + "h" * 2000 + "|b|\n|-|-|\n", "|1|2|\n", ""),
    Recipe("<html><table><tr><th>" + "h" * 2000 + "<th>b", "<tr><td>1<td>2", ""),
    Recipe("# " + "h" * 2000 + "\n\n", "word and another. ", ""),
)


def recipes(seed: int, count: int) -> list[Recipe]:
    """So many recipes: those of `KNOWN` first, the others drawn by the seed."""
    chance = random.Random(seed)

    def some(most: int) -> str:
        return "".join(chance.choices(PIECES, k=chance.randint(0, most)))

    drawn = [Recipe(some(3), some(3) or "a", some(2)) for _ in range(count)]
    return [*KNOWN, *drawn]
