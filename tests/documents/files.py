"""Files of every format for the tests: made here, so that a test knows what is in them."""

import io
import itertools
import struct
import zipfile

import docx
import pptx
import xlsxwriter
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

HEBREW, ARABIC = "שלום עולם, זה מבחן", "مرحبا بالعالم، هذا اختبار"
CHINESE, JAPANESE = "中华人民共和国的历史很悠久。", "吾輩は猫である。名前はまだ無い。"


def written(fill):
    """The bytes that `fill` writes into a file."""
    out = io.BytesIO()
    fill(out)
    return out.getvalue()


def word(*, title=None, parts=(("Introduction", ["First paragraph.", "Second paragraph."]),), table=None):
    """A DOCX: parts of a heading and its paragraphs, each part on a page of its own."""
    document = docx.Document()
    document.core_properties.title = title or ""
    for number, (heading, paragraphs) in enumerate(parts):
        if number:
            document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
        if heading:
            document.add_heading(heading, 1)
        for text in paragraphs:
            document.add_paragraph(text)
    if table:
        grid = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, text in zip(grid.add_row().cells, row, strict=True):
                cell.text = text
    return written(document.save)


def word_with_changes():
    """A DOCX with an inserted run, a deleted one, and text in a content control."""
    document = docx.Document()
    paragraph = document.add_paragraph("Kept ")
    for tag, text, inner in (("w:ins", "inserted", "w:t"), ("w:del", "deleted", "w:delText")):
        change, run, piece = OxmlElement(tag), OxmlElement("w:r"), OxmlElement(inner)
        piece.text = text
        run.append(piece)
        change.append(run)
        paragraph._p.append(change)
    control, content = OxmlElement("w:sdt"), OxmlElement("w:sdtContent")
    control.append(content)
    held = document.add_paragraph("In a form field")._p
    held.addnext(control)
    content.append(held)
    assert control.find(qn("w:sdtContent")) is not None
    return written(document.save)


def slides(*, title=None, pages=(("Welcome", ["One point", "Another point"], "Say hello"),)):
    """A PPTX: slides of a title, its bullets and the speaker's notes."""
    deck = pptx.Presentation()
    deck.core_properties.title = title or ""
    for heading, points, notes in pages:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text_frame.text = "\n".join(points)
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return written(deck.save)


def workbook(sheets):
    """An XLSX: a mapping of sheet names to rows."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True, "default_date_format": "yyyy-mm-dd"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return out.getvalue()


def open_workbook(rows):
    """An ODS of one sheet of text cells."""
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{space}:office:1.0"'
        f' xmlns:table="{space}:table:1.0" xmlns:text="{space}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Leaf">{cells}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = (
        f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{space}:manifest:1.0">'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>"
    )
    return archive(
        {
            "mimetype": b"application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": content.encode(),
            "META-INF/manifest.xml": manifest.encode(),
        }
    )


def old_workbook(rows):
    """An XLS of one sheet: BIFF8 records in a compound file of plain sectors."""

    def record(kind, body):
        return struct.pack("<HH", kind, len(body)) + body

    def cell(row, column, value):
        position = struct.pack("<HHH", row, column, 0)
        if isinstance(value, str):
            return record(0x204, position + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
        return record(0x203, position + struct.pack("<d", value))

    def opening(kind):
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 0))

    end = record(0x0A, b"")
    sheet = (
        opening(0x10) + b"".join(cell(r, c, v) for r, row in enumerate(rows) for c, v in enumerate(row)) + end
    )
    head = opening(5) + record(0x42, struct.pack("<H", 1200))
    named = struct.pack("<BBBB", 0, 0, 4, 0) + b"Leaf"
    start = len(head) + 4 + 4 + len(named) + len(end)
    return compound(head + record(0x85, struct.pack("<I", start) + named) + end + sheet, "Workbook")


def compound(stream, name):
    """A compound file with one stream: sector 0 is the table, 1 the directory, the stream follows."""
    stream = stream.ljust(max(4096, -(-len(stream) // 512) * 512), b"\0")
    sectors = len(stream) // 512
    table = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, 2 + sectors), 0xFFFFFFFE]
    table += [0xFFFFFFFF] * (128 - len(table))

    def entry(called, kind, child, first, size):
        text = (called + "\0").encode("utf-16-le")
        about = struct.pack("<HBBIII", len(text), kind, 1, 0xFFFFFFFF, 0xFFFFFFFF, child)
        return (text.ljust(64, b"\0") + about).ljust(116, b"\0") + struct.pack("<IQ", first, size)

    entries = entry("Root Entry", 5, 1, 0xFFFFFFFE, 0) + entry(name, 2, 0xFFFFFFFF, 2, len(stream))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack(
        "<HHHHH6xIIIIIIIIII", 62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, *[0xFFFFFFFE, 0] * 2, 0
    )
    header += struct.pack("<108I", *[0xFFFFFFFF] * 108)
    return header + struct.pack("<128I", *table) + entries.ljust(512, b"\0") + stream


def archive(members, compression=zipfile.ZIP_DEFLATED):
    """A zip archive of the members given."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as book:
        for name, data in members.items():
            book.writestr(name, data)
    return out.getvalue()


def replaced(data, member, content):
    """The archive with one member's content replaced."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        members = {name: book.read(name) for name in book.namelist()}
    return archive(members | {member: content})


SPACES = {
    name: f"urn:oasis:names:tc:opendocument:xmlns:{kind}:1.0"
    for name, kind in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("presentation", "presentation"),
    )
}


def open_document(kind, body, *, title=None, more=None):
    """An ODT (`text`) or ODP (`presentation`) with this XML in its body."""
    names = " ".join(f'xmlns:{name}="{space}"' for name, space in SPACES.items())
    members = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}".encode(),
        "content.xml": (
            f'<?xml version="1.0"?><office:document-content {names}><office:body><office:{kind}>{body}'
            f"</office:{kind}></office:body></office:document-content>"
        ).encode(),
    }
    if title:
        members["meta.xml"] = (
            f'<office:document-meta {names} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
            f"<dc:title>{title}</dc:title></office:meta></office:document-meta>"
        ).encode()
    return archive(members | (more or {}))


def book(chapters, *, title="The Book", more=None):
    """An EPUB whose spine lists the chapters in another order than the archive does."""
    items = "".join(
        f'<item id="c{number}" href="text/c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in reversed(range(len(chapters)))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    members = {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": (
            b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            b'<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
        ),
        "OEBPS/content.opf": (
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<metadata><dc:title>{title}</dc:title></metadata><manifest>{items}</manifest>"
            f"<spine>{spine}</spine></package>"
        ).encode(),
    }
    for number, chapter in reversed(list(enumerate(chapters))):
        members[f"OEBPS/text/c {number}.xhtml"] = f"<html><body>{chapter}</body></html>".encode()
    return archive(members | (more or {}))


def outlook_message(subject, body, sender="Ada <ada@example.org>", attachments=()):
    """An MSG: properties as streams of a compound file, in folders for its attachments."""
    streams = {"__properties_version1.0": _properties(32, {0x0037: subject, 0x1000: body, 0x0042: sender})}
    streams |= _strings({0x0037: subject, 0x1000: body, 0x0042: sender})
    for number, (name, data) in enumerate(attachments):
        folder = f"__attach_version1.0_#{number:08X}/"
        segment = struct.pack("<HHIII", 0x0102, 0x3701, 6, len(data), 0)
        segment += struct.pack("<HHIII", 0x0003, 0x3705, 6, 1, 0)
        streams[f"{folder}__properties_version1.0"] = _properties(8, {0x3707: name}) + segment
        streams |= {f"{folder}{key}": value for key, value in _strings({0x3707: name}).items()}
        streams[f"{folder}__substg1.0_37010102"] = data
    return compound_file(streams)


def _properties(header, strings):
    return bytes(header) + b"".join(
        struct.pack("<HHIII", 0x001F, number, 6, 2 * len(text) + 2, 0) for number, text in strings.items()
    )


def _strings(strings):
    return {
        f"__substg1.0_{number:04X}001F": text.ljust(2048).encode("utf-16-le")
        for number, text in strings.items()
    }


def compound_file(streams):
    """A compound file of these streams; a name with a slash is in a folder. All in plain sectors."""
    none, end = 0xFFFFFFFF, 0xFFFFFFFE
    folders = sorted({name.partition("/")[0] for name in streams if "/" in name})
    entries = [["Root Entry", 5, none, none, none, end, 0]]
    children = {"": [], **{folder: [] for folder in folders}}
    for folder in folders:
        children[""].append(len(entries))
        entries.append([folder, 1, none, none, none, 0, 0])
    chains, sectors = [], []
    for name, data in streams.items():
        folder, _slash, last = name.rpartition("/")
        children[folder].append(len(entries))
        count = -(-max(4096, len(data)) // 512)  # smaller ones belong in a stream of their own
        entries.append([last, 2, none, none, none, len(sectors), max(4096, len(data))])
        chains.append((len(sectors), count))
        sectors += [data[at * 512 : (at + 1) * 512].ljust(512, b"\0") for at in range(count)]
    for folder, inside in children.items():
        owner = 0 if not folder else 1 + folders.index(folder)
        entries[owner][4] = inside[0] if inside else none
        for one, other in itertools.pairwise(inside):
            entries[one][3] = other
    directory = -(-len(entries) * 128 // 512)
    tables = -(-(len(sectors) + directory) // 127) + 1
    first = tables + directory
    table = [0xFFFFFFFD] * tables + [*range(tables + 1, first), end]
    for start, count in chains:
        table += [*range(first + start + 1, first + start + count), end]
    table += [none] * (tables * 128 - len(table))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack(
        "<HHHHH6xIIIIIIIIII", 62, 3, 0xFFFE, 9, 6, 0, tables, tables, 0, 4096, *[end, 0] * 2, 0
    )
    header = header[:76] + struct.pack("<109I", *[*range(tables), *[none] * (109 - tables)])
    raw = b""
    for name, kind, left, right, child, start, size in entries:
        text = (name + "\0").encode("utf-16-le")
        about = struct.pack("<HBBIII", len(text), kind, 1, left, right, child)
        begin = start + first if kind == 2 else (end if kind == 5 else 0)
        raw += (text.ljust(64, b"\0") + about).ljust(116, b"\0") + struct.pack("<IQ", begin, size)
    return (
        header
        + struct.pack(f"<{len(table)}I", *table)
        + raw.ljust(directory * 512, b"\0")
        + b"".join(sectors)
    )
