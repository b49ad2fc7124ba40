"""PDF files written by hand, so that every byte of them is known: text in any script, scans, encryption."""

import hashlib
from dataclasses import dataclass

PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


@dataclass(frozen=True)
class Sheet:
    """A page: lines of (size, x, y, text), rules of (x, y, x, y), and what else it has.

    `crop` is the visible box (left, bottom, right, top); `fields` are (name, value, x, y) of a form.
    """

    lines: list
    rules: tuple = ()
    crop: tuple | None = None
    fields: tuple = ()
    rotate: int = 0


def make(pages, *, title=None, password=None, bookmarks=(), info=None, xmp=None, inherited=None):
    """A PDF whose pages are `Sheet`s, lists of (size, x, y, text) or plain strings, set line by line.

    `bookmarks` are (title, page) of its outline, or (title, page, bookmarks below). `info` has more
    entries of the Info dictionary, `xmp` is its packet. `inherited` is the size of all pages, which then
    stands in their tree alone.
    """
    sheets = [page if isinstance(page, Sheet) else Sheet(_placed(page)) for page in pages]
    book = _Book(password)
    font = book.add(b"")
    letters = sorted({letter for sheet in sheets for line in sheet.lines for letter in line[3]})
    codes = {letter: number + 1 for number, letter in enumerate(letters)}
    tree = len(book.objects) + 1
    book.add(b"")
    kids, fields = [], []
    for sheet in sheets:
        drawn = b"".join(b"%g %g m %g %g l S\n" % rule for rule in sheet.rules)
        stream = book.stream(b"".join(_shown(line, codes) for line in sheet.lines) + drawn)
        own = [book.add(_field(field)) for field in sheet.fields]
        fields += own
        kids.append(book.add(_page(sheet, tree, stream, font, own, None if inherited else (612, 792))))
    size = b"/MediaBox[0 0 %g %g]" % inherited if inherited else b""
    book.objects[tree - 1] = b"<</Type/Pages/Count %d/Kids[%s]%s>>" % (len(kids), _references(kids), size)
    book.objects[font - 1] = _font(book, codes)
    extra = b"/Outlines %d 0 R" % _outlines(book, bookmarks, kids) if bookmarks else b""
    if fields:
        extra += b"/AcroForm<</Fields[%s]>>" % _references(fields)
    if xmp is not None:
        packet = b"<</Type/Metadata/Subtype/XML/Length %d>>stream\n%s\nendstream" % (len(xmp), xmp)
        extra += b"/Metadata %d 0 R" % book.add(packet)
    root = book.add(b"<</Type/Catalog/Pages %d 0 R%s>>" % (tree, extra))
    entries = ({"Title": title} if title else {}) | (info or {})
    about = b"".join(b"/%s%s" % (name.encode(), _text(value)) for name, value in entries.items())
    return book.bytes(root, book.add(b"<<%s>>" % about) if about else None)


def scan(pages=1):
    """A PDF of pictures: its pages have lines drawn on them and not one character."""
    book = _Book(None)
    tree = 1
    book.add(b"")
    kids = []
    for _ in range(pages):
        stream = book.stream(b"0.5 g 72 72 400 600 re f")
        kids.append(
            book.add(
                b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<<>>>>"
                % (tree, stream)
            )
        )
    book.objects[0] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    return book.bytes(book.add(b"<</Type/Catalog/Pages 1 0 R>>"), None)


def _page(sheet, tree, stream, font, fields, size):
    extra = b"/MediaBox[0 0 %g %g]" % size if size else b""
    extra += b"/CropBox[%g %g %g %g]" % sheet.crop if sheet.crop else b""
    extra += b"/Annots[%s]" % _references(fields) if fields else b""
    extra += b"/Rotate %d" % sheet.rotate if sheet.rotate else b""
    return b"<</Type/Page/Parent %d 0 R/Contents %d 0 R/Resources<</Font<</F1 %d 0 R>>>>%s>>" % (
        tree,
        stream,
        font,
        extra,
    )


def _field(field):
    name, value, x, y = field
    return b"<</Type/Annot/Subtype/Widget/FT/Tx/T%s/V%s/Rect[%g %g %g %g]>>" % (
        _text(name),
        _text(value),
        *(x, y, x + 200, y + 14),
    )


def _outlines(book, bookmarks, kids, root=None, above=b""):
    """The objects of bookmarks and of those below them; the number of the one that holds them."""
    root = book.add(b"") if root is None else root
    numbers = [book.add(b"") for _ in bookmarks]
    ends = numbers[0], numbers[-1], len(numbers)
    book.objects[root - 1] = b"<<%s/First %d 0 R/Last %d 0 R/Count %d>>" % (above or b"/Type/Outlines", *ends)
    for number, following, (title, page, *below) in zip(
        numbers, [*numbers[1:], None], bookmarks, strict=True
    ):
        about = b"/Title%s/Parent %d 0 R/Dest[%d 0 R/Fit]" % (_text(title), root, kids[page - 1])
        about += b"/Next %d 0 R" % following if following else b""
        book.objects[number - 1] = b"<<%s>>" % about
        if below:
            _outlines(book, below[0], kids, number, about)
    return root


def _references(numbers):
    return b" ".join(b"%d 0 R" % number for number in numbers)


def _text(value):
    return b"<%s>" % ("\ufeff" + value).encode("utf-16-be").hex().encode()


def pictured(pages):
    """A PDF of pages that are (image, lines): an image over all of Letter, or None, and text over it.

    An image is (width, height, JPEG, is grey).
    """
    book = _Book(None)
    font = book.add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    tree, kids = book.add(b""), []
    for image, lines in pages:
        box = (612, 792) if image is None or image[1] > image[0] else (792, 612)
        parts, drawn = b"/Font<</F1 %d 0 R>>" % font, []
        if image is not None:
            drawn.append(b"q %d 0 0 %d 0 0 cm /I Do Q" % box)
            parts += b"/XObject<</I %d 0 R>>" % book.add(_jpeg(*image))
        if lines:
            shown = [b"(%s) Tj T*" % line.encode("latin-1") for line in lines]
            drawn += [b"BT /F1 11 Tf 72 720 Td 14 TL", *shown, b"ET"]
        stream = book.stream(b"\n".join(drawn))
        kids.append(
            book.add(
                b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R/Resources<<%s>>>>"
                % (tree, *box, stream, parts)
            )
        )
    book.objects[tree - 1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    return book.bytes(book.add(b"<</Type/Catalog/Pages %d 0 R>>" % tree), None)


def unmapped(lines, shift=0):
    """A PDF as old TeX wrote it: its font has pictures of letters, and no names that say which they are.

    `shift` is added to the codes, which are those of ASCII without it.
    """
    book = _Book(None)
    glyph = book.stream(b"500 0 0 0 450 700 d1 0 0 450 700 re f")
    names = b"".join(b"/a%d %d 0 R" % (code, glyph) for code in range(256))
    differences = b"/Differences[0 %s]" % b"".join(b"/a%d" % code for code in range(256))
    font = book.add(
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 500 700]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 0"
        b"/LastChar 255/Widths[%s]/CharProcs<<%s>>/Encoding<<%s>>/Resources<<>>>>"
        % (b"500 " * 256, names, differences)
    )
    shown = b"".join(
        b"BT /F1 10 Tf 1 0 0 1 72 %d Tm <%s> Tj ET\n"
        % (740 - 14 * at, bytes((ord(letter) + shift) % 256 for letter in line).hex().encode())
        for at, line in enumerate(lines)
    )
    number = len(book.objects) + 3
    kid = book.add(_page(Sheet([]), number, book.stream(shown), font, [], (612, 792)))
    assert book.add(b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % kid) == number
    return book.bytes(book.add(b"<</Type/Catalog/Pages %d 0 R>>" % number), None)


def _jpeg(wide, high, data, grey):
    return (
        b"<</Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/%s"
        b"/Filter/DCTDecode/Length %d>>\nstream\n%s\nendstream"
        % (wide, high, b"DeviceGray" if grey else b"DeviceRGB", len(data), data)
    )


def _placed(page):
    if isinstance(page, str):
        return [(11, 72, 740 - 14 * number, line) for number, line in enumerate(page.split("\n")) if line]
    return page


def _shown(line, codes):
    size, x, y, text = line
    shown = "".join(f"{codes[letter]:04x}" for letter in text)
    return f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm <{shown}> Tj ET\n".encode()


def _font(book, codes):
    rows = [f"<{code:04x}> <{letter.encode('utf-16-be').hex()}>" for letter, code in codes.items()]
    blocks = [rows[at : at + 100] for at in range(0, len(rows), 100)]
    body = "\n".join(f"{len(block)} beginbfchar\n" + "\n".join(block) + "\nendbfchar" for block in blocks)
    cmap = book.stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def"
        b" 1 begincodespacerange <0000> <ffff> endcodespacerange\n" + body.encode() + b"\nendcmap end end"
    )
    described = book.add(
        b"<</Type/FontDescriptor/FontName/Helvetica/Flags 32/FontBBox[0 -200 1000 900]/ItalicAngle 0"
        b"/Ascent 800/Descent -200/CapHeight 700/StemV 80>>"
    )
    inner = book.add(
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Helvetica/DW 500/FontDescriptor %d 0 R"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>" % described
    )
    return (
        b"<</Type/Font/Subtype/Type0/BaseFont/Helvetica/Encoding/Identity-H/DescendantFonts[%d 0 R]"
        b"/ToUnicode %d 0 R>>" % (inner, cmap)
    )


class _Book:
    def __init__(self, password):
        self.objects = []
        self.id = hashlib.md5(b"a fixed id").digest()
        self.key = self.locked = None
        if password is not None:
            self._lock(password.encode())

    def add(self, body):
        self.objects.append(body)
        return len(self.objects)

    def stream(self, data):
        if self.key:
            number = len(self.objects) + 1
            own = hashlib.md5(self.key + number.to_bytes(3, "little") + b"\0\0").digest()[: len(self.key) + 5]
            data = rc4(own, data)
        return self.add(b"<</Length %d>>\nstream\n%s\nendstream" % (len(data), data))

    def _lock(self, password):
        """The standard security handler, revision 2: RC4 with 40 bits."""
        padded = (password + PADDING)[:32]
        owner = rc4(hashlib.md5(padded).digest()[:5], padded)
        rights = (-4).to_bytes(4, "little", signed=True)
        self.key = hashlib.md5(padded + owner + rights + self.id).digest()[:5]
        self.locked = b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (
            owner.hex().encode(),
            rc4(self.key, PADDING).hex().encode(),
        )

    def bytes(self, root, info):
        extra = b"/Info %d 0 R" % info if info else b""
        if self.locked:
            extra += b"/Encrypt %d 0 R/ID[<%s><%s>]" % (
                self.add(self.locked),
                self.id.hex().encode(),
                self.id.hex().encode(),
            )
        out = bytearray(b"%PDF-1.7\n")
        places = []
        for number, body in enumerate(self.objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        out += b"".join(b"%010d 00000 n \n" % position for position in places)
        out += b"trailer\n<</Size %d/Root %d 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (
            len(places) + 1,
            root,
            extra,
            start,
        )
        return bytes(out)


def rc4(key, data):
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
