"""Writes the binary files of the sample collection: `python -m scripts.sample_files`.

A Word file, a spreadsheet and a PDF of a few kilobytes each. The same text always gives the same bytes:
entries of the archives have no date and are not compressed, as the wheel compresses them anyway.
"""

import io
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parents[1] / "src/holdfast/cli/sample"
OFFICE = "http://schemas.openxmlformats.org"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

# A paragraph that starts with "# " or "## " is a heading.
INSPECTION = """# Inspection of the northern crane

Carried out by Hask & Sons at Port Wren on 11 March 2026, at the request of Ingrid Solberg, the harbour
master. Inspector: Greta Hask. Present: Piet van Dalen, electrician of Port Wren, and Amina Yusuf, crane
driver.

## Occasion

On the night of 5 March the power failed for four minutes during lift 1187. Tomas Reyes, the shift leader,
entered the lift as in doubt and finished it at 04:05 under its old number. Baltic Mutual asks for this
inspection before it renews the policy of the harbour.

## Cause

The relay K4 in the feeder of the northern quay was burnt. The same feeder supplies the lamp at berth 1,
which explains why that lamp flickers. Relay K4 was replaced by Greta Hask and Piet van Dalen on the same
day.

## Condition

The brake of the hook held the load of 21 tonnes without slipping. Rope, hook and brake are in order. The
crane may lift up to 35 tonnes until the next inspection, which is due on 11 September 2026.

## Recommendation

Port Wren should give the crane a feeder of its own. Hask & Sons offers the work for 18,600 dollars. Until
then a lift of more than 25 tonnes should not be begun at night.
"""

REGISTER = (
    ("ship", "type", "operator", "length in metres", "draught in metres", "master", "home port"),
    ("Albatross", "container ship", "Meridian Shipping", 172, 8.2, "Rosa Lindqvist", "Rotterdam"),
    ("Meridian Star", "container ship", "Meridian Shipping", 165, 8.5, "Paul Adeyemi", "Rotterdam"),
    ("Hansa Linden", "bulk carrier", "Meridian Shipping", 118, 6.4, "Jonas Weber", "Hamburg"),
    ("Petrel", "ferry", "Northway Lines", 104, 5.1, "Henrik Aas", "Bergen"),
    ("Corrie", "coaster", "Firth Timber", 82, 4.3, "Fiona Baird", "Inverness"),
    ("Kittiwake", "pilot boat", "Port Wren", 14, 1.6, "Marek Nowak", "Port Wren"),
)

# Pages of (size, text); an empty text leaves a gap.
MINUTES = (
    (
        (20, "Minutes of the harbour council"),
        (11, "Port Wren, 12 March 2026. In the chair: Edmund Hale. Present: Ingrid Solberg,"),
        (11, "harbour master; Joan Okafor, senior pilot; Lena Brandt, shift leader of the day."),
        (11, ""),
        (14, "1. Appeal of Northway Lines"),
        (11, "Northway Lines appeals against the enquiry into the fog of 5 March. The council follows"),
        (11, "the harbour master: the Petrel had to stay outside. The appeal is dismissed. Joan Okafor"),
        (11, "adds that Henrik Aas has entered Port Wren 46 times within a year, so that his exemption"),
        (11, "under rule 1 of the pilot rules stands."),
        (11, ""),
        (14, "2. A feeder for the northern crane"),
        (11, "Ingrid Solberg presents the inspection by Hask & Sons. The council grants 18,600 dollars"),
        (11, "for a feeder of the crane's own, to be built before 1 May 2026, when the policy with"),
        (11, "Baltic Mutual is renewed. Piet van Dalen supervises the work."),
    ),
    (
        (14, "3. Deep ships at berth 1"),
        (11, "On 7 March the Meridian Star, which draws 8.5 metres, came to berth 1 only at high water,"),
        (11, "because the tide table gave a depth of 8.6 metres at low water. From now on a ship"),
        (11, "keeps half a metre of water under her keel at berth 1, also at low water. The harbour"),
        (11, "master adds this rule to the section about berths of the harbour handbook."),
        (11, ""),
        (14, "4. Lifts in doubt"),
        (11, "The council answers the question of Oliver Finch of Baltic Mutual: a lift in doubt is"),
        (11, "finished only when the shift leader and the electrician have both looked at the load, as"),
        (11, "Tomas Reyes and Piet van Dalen did with lift 1187. Both sign the lift book."),
        (11, ""),
        (14, "5. Next meeting"),
        (11, "9 April 2026. Edmund Hale asks Joan Okafor for the number of night passages in March,"),
        (11, "at 910 dollars each."),
    ),
)


def docx(text: str) -> bytes:
    """A Word file of headings and paragraphs."""
    word = f"{OFFICE}/wordprocessingml/2006/main"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr>'
        f'<w:rPr><w:b/><w:sz w:val="{36 - 8 * level}"/></w:rPr></w:style>'
        for level in (1, 2)
    )
    body = "".join(_paragraph(" ".join(each.split())) for each in text.split("\n\n"))
    return _archive(
        {
            "[Content_Types].xml": _content_types(
                {
                    "word/document.xml": "wordprocessingml.document.main",
                    "word/styles.xml": "wordprocessingml.styles",
                }
            ),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "word/document.xml")}),
            "word/_rels/document.xml.rels": _relations({"rId1": ("styles", "styles.xml")}),
            "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{word}">{styles}</w:styles>',
        }
    )


def _paragraph(text: str) -> str:
    marks = len(text) - len(text.lstrip("#"))
    style = f'<w:pPr><w:pStyle w:val="Heading{marks}"/></w:pPr>' if marks else ""
    words = escape(text[marks:].strip())
    return f'<w:p>{style}<w:r><w:t xml:space="preserve">{words}</w:t></w:r></w:p>'


def xlsx(sheet: str, rows: tuple[tuple[str | float, ...], ...]) -> bytes:
    """A spreadsheet of one sheet."""
    main = f"{OFFICE}/spreadsheetml/2006/main"
    relations = f"{OFFICE}/officeDocument/2006/relationships"
    cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return _archive(
        {
            "[Content_Types].xml": _content_types(
                {
                    "xl/workbook.xml": "spreadsheetml.sheet.main",
                    "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet",
                }
            ),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/_rels/workbook.xml.rels": _relations({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
            f'<sheet name="{sheet}" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData>'
            "</worksheet>",
        }
    )


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def pdf(pages: tuple[tuple[tuple[int, str], ...], ...]) -> bytes:
    """A PDF of lines in Helvetica, headings in bold."""
    kids = " ".join(f"{6 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    ]
    for number, lines in enumerate(pages):
        stream = _text_lines(lines)
        resources = "<< /Font << /F1 3 0 R /F2 4 0 R >> >>"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}endstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources {resources} "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + end + trailer).encode("ascii")


def _text_lines(lines: tuple[tuple[int, str], ...]) -> str:
    drawn, height = "0.10 0.32 0.45 rg 0 812 595 30 re f 0 g\n", 780
    for size, text in lines:
        font = "F1" if size == 11 else "F2"
        words = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        drawn += f"BT /{font} {size} Tf 60 {height} Td ({words}) Tj ET\n" if text else ""
        height -= 17 if size == 11 else size + 10
    return drawn


def _content_types(parts: dict[str, str]) -> str:
    office = "application/vnd.openxmlformats-officedocument"
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{office}.{kind}+xml"/>' for name, kind in parts.items()
    )
    default = (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    )
    return f'<Types xmlns="{OFFICE}/package/2006/content-types">{default}{overrides}</Types>'


def _relations(targets: dict[str, tuple[str, str]]) -> str:
    types = f"{OFFICE}/officeDocument/2006/relationships"
    each = "".join(
        f'<Relationship Id="{name}" Type="{types}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{each}</Relationships>'


def _archive(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), XML + content)
    return buffer.getvalue()


def files() -> dict[str, bytes]:
    """The files by name."""
    return {
        "crane-inspection.docx": docx(INSPECTION),
        "ship-register.xlsx": xlsx("Ships", REGISTER),
        "council-minutes.pdf": pdf(MINUTES),
    }


def main() -> None:
    """Write them all."""
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
