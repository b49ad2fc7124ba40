"""HTML: the text a reader would see, with its headings, lists, code and tables.

The tree is walked without recursion: a hundred thousand nested elements need only a few bytes each.
"""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.documents.parse import encodings, properties, tables, texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_UNSEEN = frozenset(
    {"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "head", "nav"}
    | {"select", "button", "dialog", "math"}
)
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl"}
    | {"dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "main"}
    | {"ol", "p", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)
# The first block inside a list item, as in `<li><p>`, continues the item.
_OPEN = frozenset({Role.LIST, Role.HEADING})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_META = re.compile(rb"<meta[^>]+", re.IGNORECASE)
_CHARSET = re.compile(rb"""(?<!<meta)charset\s*+=\s*+["']?+\s*+([\w.:-]+)""", re.IGNORECASE)
_ENCODING = re.compile(rb"""encoding=["']([\w.-]+)["']""", re.IGNORECASE)


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the one page of an HTML file."""
    title, blocks = blocks_of(texts.content(path, limits.bytes))
    return title, [Page(1, blocks)]


def blocks_of(data: bytes) -> tuple[str | None, tuple[TextBlock, ...]]:
    """The title and the blocks of HTML in the encoding that it declares, or else as `encodings` finds out."""
    return text_blocks(encodings.decode(data, _declared(data[:4096])))


def text_blocks(text: str) -> tuple[str | None, tuple[TextBlock, ...]]:
    """The title and the blocks of decoded HTML."""
    tree = LexborHTMLParser(text)
    title = tree.css_first("title")
    blocks = tuple(_Walk().blocks(tree.root)) if tree.root is not None else ()
    named = " ".join(title.text().split()) if title is not None else ""
    heading = next((block.text for block in blocks if block.role is Role.HEADING), None)
    return named or heading, blocks


_META_NAMES = {
    "description": "description",
    "og:description": "description",
    "dc.description": "description",
    "author": "author",
    "dc.creator": "author",
    "article:author": "author",
    "keywords": "keywords",
    "date": "created",
    "dc.date": "created",
    "article:published_time": "created",
    "dcterms.created": "created",
    "last-modified": "modified",
    "article:modified_time": "modified",
    "dcterms.modified": "modified",
    "publisher": "publisher",
    "og:site_name": "publisher",
    "language": "language",
    "og:title": "title",
}
_MOST_META = 500


def properties_of(data: bytes) -> dict[str, object]:
    """What the head of an HTML file says about it: title, description, author, keywords, dates, language."""
    tree = LexborHTMLParser(encodings.decode(data, _declared(data[:4096])))
    named: dict[str, object] = {}
    root, title = tree.root, tree.css_first("head > title")
    if title is not None and (text := " ".join(title.text().split())):
        named["title"] = text
    for meta in tree.css("meta")[:_MOST_META]:
        key = meta.attributes.get("name") or meta.attributes.get("property") or ""
        name = _META_NAMES.get(key.strip().casefold())
        content = " ".join((meta.attributes.get("content") or "").split())
        if name is None or not content:
            continue
        value: object = content
        if name == "keywords":
            value = properties.keywords(content)
        elif name in {"created", "modified"}:
            value = properties.time_text(content) or content
        named.setdefault(name, value)
    language = root.attributes.get("lang") if root is not None else None
    if language:
        named["language"] = language
    return named


def _declared(head: bytes) -> str | None:
    """The encoding that the document declares first, in either way."""
    named = [match for match in (_CHARSET.search(meta.group()) for meta in _META.finditer(head)) if match]
    first = _ENCODING.search(head)
    if named and (first is None or head.find(named[0].group()) < first.start()):
        first = named[0]
    return first[1].decode("ascii", "replace") if first is not None else None


class _Walk:
    """One pass over the tree in document order; `_held` is the text of the current block."""

    def __init__(self) -> None:
        self._found: list[TextBlock] = []
        self._held: list[str] = []
        self._inked = False  # `_held` has more than spaces
        self._role = Role.PARAGRAPH
        self._level = 0

    def blocks(self, root: LexborNode) -> list[TextBlock]:
        """All blocks in order."""
        node: LexborNode | None = root
        while node is not None:
            inside = self._enter(node)
            below = node.first_child if inside else None
            if below is not None:
                node = below
                continue
            if inside:
                self._leave(node)
            node = self._onward(node, root)
        self._end()
        return self._found

    def _onward(self, node: LexborNode, root: LexborNode) -> LexborNode | None:
        """The next node that is not below this one; ends the elements left on the way."""
        here: LexborNode | None = node
        while here is not None and here.mem_id != root.mem_id:
            if here.next is not None:
                return here.next
            here = here.parent
            if here is not None:
                self._leave(here)
        return None

    def _enter(self, node: LexborNode) -> bool:
        """Process a node; False if its children are already processed or invisible."""
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            self._held.append(text)
            self._inked = self._inked or not (not text or text.isspace())
        elif tag is None or tag in _UNSEEN or tag[0] in "-_!" or "hidden" in node.attributes:
            return False
        elif tag == "br":
            self._held.append("\n" if self._role is Role.CODE else " ")
        elif tag == "pre":
            self._begin(Role.CODE)
        elif tag in _HEADINGS:
            self._begin(Role.HEADING, _HEADINGS[tag])
        elif tag == "li":
            self._begin(Role.LIST)
        elif tag == "table" and _is_plain(node):
            self._end()
            self._table(node)
            return False
        elif tag in _BLOCKS and (self._role not in _OPEN or self._inked):
            self._end()
        return True

    def _leave(self, node: LexborNode) -> None:
        if node.tag in _BLOCKS or node.tag in _HEADINGS or node.tag in {"li", "pre"}:
            self._end()

    def _begin(self, role: Role, level: int = 0) -> None:
        self._end()
        self._role, self._level = role, level

    def _end(self) -> None:
        text = "".join(self._held)
        text = text.strip("\n").rstrip() if self._role is Role.CODE else " ".join(text.split())
        if text.strip():
            self._found.append(TextBlock(self._role, text, self._level))
        self._held = []
        self._inked = False
        self._role, self._level = Role.PARAGRAPH, 0

    def _table(self, table: LexborNode) -> None:
        caption = table.css_first("caption")
        if caption is not None and (text := " ".join(caption.text().split())):
            self._found.append(TextBlock(Role.PARAGRAPH, text))
        rows = [[cell.text(separator=" ") for cell in row.css("td, th")] for row in table.css("tr")]
        headed = table.css_first("thead th, tr:first-child th") is not None or None
        self._found += [TextBlock(Role.ROW, text) for text in tables.row_texts(rows, headed=headed)]


def _is_plain(table: LexborNode) -> bool:
    """True for a data table; one that contains tables, headings or lists is used for layout."""
    return table.css_first("td table, td h1, td h2, td h3, td ul, td ol, td pre") is None
