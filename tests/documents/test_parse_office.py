"""Office files as people see them: tables in tables, merged cells, notes, comments, charts, hidden sheets."""

import io

import docx
import pptx
import pytest
import xlsxwriter
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from tests.documents import files


def texts(pages):
    return [block.text for page in pages for block in page.blocks]


def test_a_table_in_a_table_is_read_as_rows(read):
    """Its rows follow those of the outer one, and no cell is read twice."""
    document = docx.Document()
    outer = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        [*outer.rows[0].cells, *outer.rows[1].cells], ["Name", "Detail", "Ada", "see"], strict=True
    ):
        cell.text = text
    inner = outer.rows[1].cells[1].add_table(rows=2, cols=2)
    for cell, text in zip(
        [*inner.rows[0].cells, *inner.rows[1].cells], ["Year", "City", "1815", "Oslo"], strict=True
    ):
        cell.text = text
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == ["Name: Ada; Detail: see", "Year: 1815; City: Oslo"]


def test_merged_cells_keep_every_row_whole(read):
    """A cell merged downwards stands in each of its rows; one merged sideways moves no column."""
    document = docx.Document()
    grid = document.add_table(rows=4, cols=3)
    rows = [["Region", "City", "Size"], ["North", "Oslo", "1"], ["", "Bergen", "2"], ["South", "", "3"]]
    for row, values in zip(grid.rows, rows, strict=True):
        for cell, text in zip(row.cells, values, strict=True):
            cell.text = text
    grid.cell(1, 0).merge(grid.cell(2, 0))
    grid.cell(3, 0).merge(grid.cell(3, 1))
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == [
        "Region: North; City: Oslo; Size: 1", "Region: North; City: Bergen; Size: 2",
        "Region: South; Size: 3",
    ]  # fmt: skip


def test_headers_stand_once_and_page_numbers_never(read):
    """Two sections with the same header have it once, before the text; the footer comes last."""
    document = docx.Document()
    document.add_paragraph("First section.")
    document.sections[0].header.paragraphs[0].text = "Tide report"
    document.sections[0].footer.paragraphs[0].text = "Page 1 of 9"
    second = document.add_section()
    second.header.is_linked_to_previous = second.footer.is_linked_to_previous = False
    second.header.paragraphs[0].text = "Tide report"
    second.footer.paragraphs[0].text = "Confidential"
    document.add_paragraph("Second section.")
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == ["Tide report", "First section.", "Second section.", "Confidential"]


def test_comments_and_changes_are_read_as_they_would_print(read):
    """Insertions are text, deletions are not; a comment follows its paragraph with its author."""
    document = docx.Document()
    paragraph = document.add_paragraph("The tide ")
    for tag, text, inner in (("w:ins", "rises", "w:t"), ("w:del", "falls", "w:delText")):
        change, run, piece = OxmlElement(tag), OxmlElement("w:r"), OxmlElement(inner)
        piece.text = text
        run.append(piece)
        change.append(run)
        paragraph._p.append(change)
    document.add_comment(paragraph.runs[0], text="Is it so?", author="Ada")
    document.add_paragraph("The end.")
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == ["The tide rises", "Comment by Ada: Is it so?", "The end."]


def test_a_text_box_is_read_once(read):
    """Word writes it twice, for itself and for older programs."""
    document = docx.Document()
    run = document.add_paragraph("Beside a box.").add_run()
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    both = run._r.makeelement(f"{{{space}}}AlternateContent", {})
    for tag in ("Choice", "Fallback"):
        branch = both.makeelement(f"{{{space}}}{tag}", {})
        content, inner, piece = OxmlElement("w:txbxContent"), OxmlElement("w:p"), OxmlElement("w:r")
        words = OxmlElement("w:t")
        words.text = "In the box."
        piece.append(words)
        inner.append(piece)
        content.append(inner)
        branch.append(content)
        both.append(branch)
    run._r.append(both)
    assert run._r.find(qn("w:t")) is None
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == ["Beside a box.", "In the box."]


def test_slides_have_charts_merged_cells_and_notes(read):
    """The title of a chart is text; a cell merged downwards stands in each of its rows."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Tides"
    data = CategoryChartData()
    data.categories = ["a", "b"]
    data.add_series("Series", (1, 2))
    box = Inches(1), Inches(1), Inches(4), Inches(2)
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Height by hour"
    grid = slide.shapes.add_table(3, 2, *box).table
    for at, text in {
        (0, 0): "Region",
        (0, 1): "City",
        (1, 0): "North",
        (1, 1): "Oslo",
        (2, 1): "Bergen",
    }.items():
        grid.cell(*at).text = text
    grid.cell(1, 0).merge(grid.cell(2, 0))
    slide.notes_slide.notes_text_frame.text = "say it"
    _outline, pages = read(files.written(deck.save))
    assert texts(pages) == [
        "Tides", "Height by hour", "Region: North; City: Oslo", "Region: North; City: Bergen", "say it",
    ]  # fmt: skip


def test_a_workbook_shows_what_is_seen(read):
    """Values of formulas, merged cells in each row, titles of charts; a hidden sheet is not read."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        seen, hidden = book.add_worksheet("Seen"), book.add_worksheet("Hidden")
        seen.write_row(0, 0, ["Region", "City", "Size"])
        seen.merge_range(1, 0, 2, 0, "North")
        seen.write_row(1, 1, ["Oslo", 1])
        seen.write(2, 1, "Bergen")
        seen.write_formula(2, 2, "=C2+1", value=2)
        chart = book.add_chart({"type": "column"})
        chart.add_series({"values": "=Seen!$C$2:$C$3"})
        chart.set_title({"name": "Sizes of cities"})
        seen.insert_chart(5, 0, chart)
        hidden.write(0, 0, "secret")
        hidden.hide()
    outline, pages = read(out.getvalue())
    assert outline.parts == (3,)
    assert texts(pages) == [
        "Region: North; City: Oslo; Size: 1", "Region: North; City: Bergen; Size: 2", "Sizes of cities",
    ]  # fmt: skip


@pytest.mark.parametrize("above", [0, 1, 5])
@pytest.mark.parametrize("beside", [0, 2])
def test_a_table_below_empty_rows_is_read_to_its_end(read, above, beside):
    """Its first filled row has the names, its last row is not lost, and merged cells stand where they are."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Cities")
        sheet.write_row(above, beside, ["Region", "City"])
        sheet.merge_range(above + 1, beside, above + 2, beside, "North")
        for number, city in enumerate(["Oslo", "Bergen"], start=1):
            sheet.write(above + number, beside + 1, city)
        sheet.write_row(above + 3, beside, ["South", "Rome"])
    outline, pages = read(out.getvalue())
    assert outline.parts == (4,)
    assert texts(pages) == [
        "Region: North; City: Oslo", "Region: North; City: Bergen", "Region: South; City: Rome",
    ]  # fmt: skip


def test_equations_of_a_document_are_text(read):
    """Each letter and number of them, with a space where a fraction or an exponent begins."""
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    fraction = "<m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
    document = docx.Document()
    equation = parse_xml(f'<m:oMath xmlns:m="{math}">{fraction}</m:oMath>')
    document.add_paragraph("Mean")._p.append(equation)
    _outline, pages = read(files.written(document.save))
    assert texts(pages) == ["Mean a+b 2"]
