"""Recognises a file's format by its content. The name decides only between formats of plain text."""

import re

from holdfast.core.errors import WorkError
from holdfast.documents.parse import archive, compound, encodings, front_matter, text_signs
from holdfast.documents.parse.records import Format
from holdfast.documents.parse.source import Readable

HEAD = 64 * 1024
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IMAGE_STARTS = (
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"\xff\xd8\xff", Format.JPEG),
    (b"II*\0", Format.TIFF),
    (b"MM\0*", Format.TIFF),
)
_NAMED = {
    "csv": Format.CSV,
    "tsv": Format.TSV,
    "tab": Format.TSV,
    "htm": Format.HTML,
    "html": Format.HTML,
    "xhtml": Format.HTML,
    "md": Format.MARKDOWN,
    "markdown": Format.MARKDOWN,
    "mdx": Format.MARKDOWN,
    "txt": Format.TEXT,
    "text": Format.TEXT,
    "log": Format.TEXT,
}
_MEMBERS = (
    ("word/document.xml", Format.DOCX),
    ("ppt/presentation.xml", Format.PPTX),
    ("xl/workbook.xml", Format.XLSX),
)
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_OPEN_KINDS = {"text": Format.ODT, "presentation": Format.ODP, "spreadsheet": Format.ODS}
_OLD = (("WordDocument", "Word", "DOCX"), ("PowerPoint Document", "PowerPoint", "PPTX"))
_HTML_START = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_HTML_TAG = re.compile(r"<(?:html|head|body|div|p|table|h[1-6]|span|ul|article)\b", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_MARKDOWN_LINE = re.compile(r"#{1,6} \S|```|~~~|[-*+] \S|> \S")
_ATX = re.compile(r"^#{1,6} \S", re.MULTILINE)


def sniff(path: Readable, name: str = "") -> Format:
    """The format of a file. May open archives: run it in the child if `from_head` is not enough."""
    head = read_head(path)
    document_format = from_head(head, name)
    if document_format is not None:
        return document_format
    return _archived(path) if head.startswith(_ZIP) else _compound(path)


def read_head(path: Readable) -> bytes:
    """The first bytes of a file, enough to recognise text; raises `no_text` for an empty one."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head:
        raise WorkError("the file is empty", code="no_text")
    return head


def from_head(head: bytes, name: str = "") -> Format | None:
    """The format shown by the first bytes; None for a container that must be opened.

    Raises `unknown_format` for unsupported formats.
    """
    if head.startswith((*_ZIP, _COMPOUND)):
        return None
    if b"%PDF-" in head[:1024]:
        return Format.PDF
    image = image_format(head)
    if image is not None:
        return image
    if not encodings.is_text(head):
        raise _unsupported()
    return _textual(encodings.decode_head(head), name, whole=len(head) < HEAD)


def image_format(head: bytes) -> Format | None:
    """The format of an image by its first bytes; None for anything else."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Format.WEBP
    return next((form for start, form in _IMAGE_STARTS if head.startswith(start)), None)


def check_head(head: bytes) -> None:
    """Raise WorkError `unknown_format` if a file with this beginning cannot be supported.

    Cheap and linear, for uploads. A container passes: its contents are examined by the worker.
    """
    if head.startswith((*_ZIP, _COMPOUND)) or b"%PDF-" in head[:1024] or encodings.is_text(head):
        return
    if image_format(head) is not None:
        return
    raise _unsupported()


def _unsupported() -> WorkError:
    message = (
        "the format of this file is not supported; use PDF, DOCX, PPTX, XLSX, XLS, ODT, ODP, ODS, EPUB, RTF,"
        " e-mail (EML, MSG), CSV, JSON, XML, a notebook, HTML, Markdown, source code, plain text, or an image"
        " (PNG, JPEG, TIFF, WebP)"
    )
    return WorkError(message, code="unknown_format")


def _textual(text: str, name: str, *, whole: bool) -> Format:
    if _begins_as_html(text):
        return Format.HTML
    form = text_signs.by_content(text, name, whole=whole)
    if form is not None:
        return form
    hint = _NAMED.get(text_signs.extension(name)) if "." in name else None
    if hint is Format.HTML and not _has_tag(text):
        hint = None
    hint = hint or text_signs.by_name(name)
    if hint is not None:
        return hint
    if front_matter.seems_to_begin(text):
        return Format.MARKDOWN
    separator = regular_separator(text)
    if separator is not None:
        return Format.TSV if separator == "\t" else Format.CSV
    if _ATX.search(text) and _is_markdown(text):
        return Format.MARKDOWN
    return Format.TEXT


# Scanned by hand: regular expressions backtracked exponentially on a few hundred bytes, or took a minute for
# a few ten thousand.


def _begins_as_html(text: str) -> bool:
    """True if only an XML declaration and comments precede the first tag."""
    at = _after_space(text, 0)
    if text[at : at + 5].lower() == "<?xml":
        end = text.find(">", at)
        at = _after_space(text, end + 1) if end > 0 else len(text)
    while text.startswith("<!--", at):
        end = text.find("-->", at + 4)
        at = _after_space(text, end + 3) if end > 0 else len(text)
    return _HTML_START.match(text, at) is not None


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at


def _has_tag(text: str) -> bool:
    """True if a tag starts anywhere and ends after that."""
    tag = _HTML_TAG.search(text)
    return tag is not None and text.find(">", tag.end()) >= 0


def _is_markdown(text: str) -> bool:
    """True if there are two signs of Markdown: line markers, table rows, links."""
    marks = 0
    for line in text.split("\n"):
        begins = _MARKDOWN_LINE.match(line)
        if begins is None and len(line) > 2 and line[0] == line[-1] == "|":
            marks += 1
        else:
            marks += (begins is not None) + _links(line, begins.end() if begins is not None else 0)
        if marks >= 2:
            return True
    return False


def _links(line: str, start: int) -> int:
    """How many `[text](url)` a line has from here on, counted up to two."""
    count, closed = 0, 0
    while count < 2:
        middle = line.find("](", start)
        if middle < 0:
            break
        opened = line.find("[", line.rfind("]", start, middle) + 1 or start, middle)
        if closed < middle + 2:
            closed = line.find(")", middle + 2)
        if closed < 0:
            break
        is_link = 0 <= opened < middle - 1 and closed > middle + 2
        count += is_link
        start = closed + 1 if is_link else middle + 1
    return count


def regular_separator(text: str) -> str | None:
    """The separator with the same count, at least two, in each of the first three or more lines."""
    lines = [line for line in text[:16384].split("\n")[:20] if line.strip()]
    if len(text) > 16384 and len(lines) < 20:
        lines = lines[:-1]
    if len(lines) < 3:
        return None
    for separator in "\t;,|":
        counts = {line.count(separator) for line in lines}
        if len(counts) == 1 and counts.pop() >= 2:
            return separator
    return None


def _archived(path: Readable) -> Format:
    names = archive.names(path)
    for member, document_format in _MEMBERS:
        if member in names:
            return document_format
    mime_type = archive.first_bytes(path, "mimetype").decode("ascii", "replace").strip()
    if "content.xml" in names and mime_type.startswith(_OPEN_DOCUMENT):
        kind = mime_type.removeprefix(_OPEN_DOCUMENT).removesuffix("-template")
        if kind in _OPEN_KINDS:
            return _OPEN_KINDS[kind]
    if mime_type == "application/epub+zip" or "META-INF/container.xml" in names:
        return Format.EPUB
    return Format.ZIP


def _compound(path: Readable) -> Format:
    """Distinguish old workbooks, messages, encrypted documents and old formats by their streams."""
    names = compound.stream_names(path)
    if "EncryptedPackage" in names:
        raise WorkError(
            "the document is encrypted; remove its password and upload it again", code="encrypted"
        )
    if "__properties_version1.0" in names:
        return Format.MSG
    for name, program, ending in _OLD:
        if name in names:
            raise WorkError(
                f"the file is in the old format of {program} (before 2007); open it in {program} or"
                f" LibreOffice, save it as {ending} or PDF and upload that",
                code="old_office",
            )
    if names & {"Workbook", "Book"}:
        return Format.XLS
    raise WorkError(
        "the file is in an old or unknown Office format; save it as DOCX, PPTX or PDF", code="unknown_format"
    )
