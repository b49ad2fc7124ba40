"""XML of any vocabulary: the text of its elements. Read as a stream, without a tree and without recursion."""

from xml.parsers import expat

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_STEP = 64 * 1024
_TITLES = frozenset({"title", "name"})


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the one page of an XML file."""
    blocks = ElementTexts()
    blocks.feed(texts.content(path, limits.text_bytes))
    return blocks.title, [Page(1, tuple(TextBlock(Role.PARAGRAPH, text) for text in blocks.texts))]


class ElementTexts:
    """The texts of the elements, in order.

    An element that has text of its own is one text, with all that is inside it (`<p>a <b>word</b></p>`). One
    that has none is a container, and its elements are looked at one by one.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.title: str | None = None
        self._depth = 0
        self._owner = 0  # the depth of the element whose text is being collected; 0 for none
        self._collected: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> None:
        """Read the whole of it. `broken_file` if it is no XML, `archive_bomb` if it declares entities."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.EntityDeclHandler = _refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            for at in range(0, len(data), _STEP):
                parser.Parse(data[at : at + _STEP], at + _STEP >= len(data))
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise WorkError(
                f"the file is not valid XML ({error}); upload it again", code="broken_file"
            ) from error

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._owner:
            self._collected.append(" ")
        else:
            self._name = name

    def _text(self, text: str) -> None:
        if not self._owner:
            if text.isspace():
                return
            self._owner = self._depth
        self._collected.append(text)

    def _end(self, _name: str) -> None:
        if self._owner == self._depth:
            text = plain(" ".join("".join(self._collected).split()))
            if text:
                self.texts.append(text)
                if self.title is None and self._name.rpartition(" ")[2].lower() in _TITLES:
                    self.title = text[:200]
            self._owner = 0
            self._collected = []
        self._depth -= 1


def _refuse(name: str, *_about: object) -> None:
    """Entities of a document's own can refer to each other and multiply, or name files of this machine."""
    raise WorkError(
        f"the file declares the entity {name[:40]!r}, which may expand; save it without a DOCTYPE",
        code="archive_bomb",
    )
