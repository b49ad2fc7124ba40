"""Everything that foreign text goes through: recognisers, parsers, cutters, word splitters, snippets."""

import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from holdfast.core import languages
from holdfast.core.errors import HoldfastError
from holdfast.core.text import plain
from holdfast.documents import chunk, language, page_cleaning, text_units
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import (
    containers,
    encodings,
    file_properties,
    front_matter,
    html,
    json_records,
    machine_data,
    mail,
    notebooks,
    paid,
    passages,
    pdf,
    pdf_characters,
    pdf_columns,
    pdf_rules,
    pdf_running_heads,
    pdf_tables,
    properties,
    rich_text,
    sheets,
    sniff,
    source_code,
    tables,
    texts,
    xml_text,
)
from holdfast.documents.parse.passages import Glyph, PixelBox
from holdfast.documents.parse.pdf_characters import Character, Line
from holdfast.documents.parse.pdf_rules import Rule
from holdfast.documents.parse.records import Format, Page, ParseLimits, Role, TextBlock
from holdfast.documents.sources import (
    feed_entries,
    git_protocol,
    page_titles,
    patterns,
    robots,
    s3,
    sitemap,
    xml_events,
)
from holdfast.documents.sources.source import SourceError
from holdfast.kinds import graph_answers, graph_names, graph_windows, outlines, qa, topic_maps
from holdfast.kinds.flows import checker, conditions, templates
from holdfast.kinds.flows.conditions import ConditionError
from holdfast.kinds.topic_maps import MapLine
from holdfast.providers import cooccurrence, event_stream, extractive
from holdfast.providers import documents as document_client
from holdfast.search import answer_prompt, citations, facts, letter_folding, snippet, stem, titles, tokenizer
from holdfast.search.answer_prompt import PromptSource
from holdfast.service import mind_map_forms
from holdfast.service.mind_maps import MapTopic, MindMap
from holdfast.store.derived.outlines import OutlineChunk, OutlineParts

Target = Callable[[str], object]
_SCHEMA = {"properties": {name: {"type": "string"} for name in ("name", "date", "email", "a")}}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _sniffed(name: str) -> Target:
    def recognise(text: str) -> object:
        with contextlib.suppress(HoldfastError):
            return sniff.from_head(_bytes(text)[: sniff.HEAD], name)
        return None

    return recognise


def _decoded(encoding: str) -> Target:
    def decode(text: str) -> object:
        with contextlib.suppress(HoldfastError):
            return encodings.decode(text.encode(encoding, "replace"))
        return None

    return decode


def _markdown(text: str) -> object:
    pages = texts.markdown_pages(text)
    return texts.markdown_title(pages[0].blocks), pages


def _flow(read: Callable[[str], object]) -> Target:
    def run(text: str) -> object:
        with contextlib.suppress(HoldfastError, ConditionError):
            return read(text)
        return None

    return run


def _cut(parse: Callable[[str], list[Page]], options: ChunkOptions) -> Target:
    return lambda text: chunk.cut(parse(text), options)


def _block(role: Role) -> Callable[[str], list[Page]]:
    return lambda text: [Page(1, (TextBlock(role, plain(text), 0),))]


def _lines(role: Role) -> Callable[[str], list[Page]]:
    return lambda text: [
        Page(1, tuple(TextBlock(role, line, len(line) % 6) for line in plain(text).split("\n")))
    ]


def _increasing(text: str) -> list[Page]:
    """Sections of falling worth: each boundary is better than all behind it."""
    whole = plain(text)
    parts = [whole[at : at + 40] for at in range(0, len(whole), 40)]
    ranked = sorted(
        parts, key=lambda part: text_units.crc32(part[: text_units.DECIDING].encode("utf-8", "surrogatepass"))
    )
    return [Page(1, tuple(TextBlock(Role.PARAGRAPH, part) for part in ranked))]


def _file(read: Callable[[Path], object]) -> Target:
    def run(text: str) -> object:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(_bytes(text))
            file.flush()
            with contextlib.suppress(HoldfastError, UnicodeError):
                return read(Path(file.name))
        return None

    return run


def _delimited(path: Path) -> object:
    rows = sheets.Rows(path, Format.CSV, ParseLimits())
    return rows.read(rows.outline().whole)


def _json_lines(path: Path) -> object:
    lines = json_records.RecordLines(path, ParseLimits())
    return lines.read(lines.outline().whole)


def _properties(text: str) -> object:
    pairs = {line[:200]: {"a": line.split(","), "b": line} for line in text.split("\n")}
    return properties.bounded(pairs), properties.title_of({"title": text}), properties.pdf_time(text)


def _snippet(text: str, language: int = languages.ENGLISH_RULES) -> object:
    terms = dict.fromkeys(tokenizer.analyse(text, 200, language)[:20], 1.0)
    return snippet.cut(text, terms, language=language)


def _words_in(code: str) -> Target:
    return lambda text: tokenizer.terms_of(text, languages.rules(code))


def _pdf_columns(text: str) -> object:
    """Every twelfth letter in a box of its own, far from the last one if that was no letter."""
    characters, x = [], 0.0
    for at, letter in enumerate(text[::12]):
        x = (x + (5.0 if letter.isalpha() else 31.0)) % 600
        y = 800 - 12.0 * (at % 60 if letter.isalpha() else at // 50)
        characters.append(Character(letter, x, y, x + 5, y + 10))
    segments = pdf_characters.segments_of(characters)
    rules = [Rule(letter.isalpha(), 7.0 * at, 0.0, 700.0) for at, letter in enumerate(text[:100])]
    for grid in pdf_rules.grids(rules):
        pdf_tables.ruled(grid, segments)
    pdf_tables.unruled(segments)
    if pdf_columns.is_scrambled(segments) or len(segments) <= pdf_columns.MOST_SEGMENTS:
        return pdf_columns.regions(segments)
    return segments


def _pdf_lines(text: str) -> object:
    lines = [Line(line, 0.0, 10.0, 0.0, 0.0) for line in text.split("\n") if line.strip()]
    page = pdf.PageText((pdf.PagePart(tuple(lines)), pdf.PagePart(tuple(lines[:100]))), 0.0, 20.0)
    edges = {number: pdf_running_heads.edge_lines(lines, 0.0, 20.0) for number in (1, 2, 3)}
    return list(pdf._page_blocks(pdf._body(page, edges, 1, 3)))


def _fields(text: str) -> object:
    return extractive.fields(text, _SCHEMA), extractive.pairs(text, 5)


def _sitemap(text: str) -> object:
    """The text as it is, and as what is inside of a sitemap."""
    for data in (text, f"<urlset>{text}", f"<urlset><url><loc>{text}"):
        with contextlib.suppress(SourceError):
            list(sitemap.entries(io.BytesIO(_bytes(data)), "it"))
    return None


def _robots(text: str) -> object:
    """The text as a file of rules, as one rule, and as the URL that is compared."""
    rules = robots.rules_in(f"user-agent: *\n{text}")
    rule = robots.rules_in(f"user-agent: *\ndisallow: /{text[: robots.MOST_RULE - 1]}")
    ends = robots.RobotsRule("/*a*ab*b*$", allows=False)
    return robots.allows(rules[:20], "http://h/a?b"), robots.allows([*rule, ends], f"http://h/{text[:5000]}")


def _feed(text: str) -> object:
    """The text as a feed, as what is inside of one, and as the text of an entry."""
    for data in (text, f"<rss><channel>{text}", f"<feed><entry><content type='xhtml'>{text}"):
        with contextlib.suppress(SourceError):
            list(feed_entries.read(io.BytesIO(_bytes(data)), "it"))
    return None


def _git_lines(text: str) -> object:
    """The text as what a server says, in one line, in many, and after the first words of a response."""
    data = _bytes(text)
    short = b"".join(
        b"%04x%s" % (len(data[at : at + 9]) + 4, data[at : at + 9]) for at in range(0, len(data), 9)
    )
    for content in (data, short, b"PACK" + data):
        with contextlib.suppress(SourceError):
            git_protocol.unpack(io.BytesIO(content), io.BytesIO(), "it")
        with contextlib.suppress(SourceError):
            git_protocol.advertisement(io.BytesIO(b"001e# service=git-upload-pack\n" + content), "", "it")
    return None


def _bucket_listing(text: str) -> object:
    """The text as a listing, and as what is inside of one."""
    for data in (text, f"<ListBucketResult><Contents>{text}", f"<ListBucketResult><Contents><Key>{text}"):
        page = s3._ListingHandler("b")
        with contextlib.suppress(SourceError):
            for _ in xml_events.read(io.BytesIO(_bytes(data)), page, "it"):
                page.take()
    return None


def _checked_answer(text: str) -> object:
    """The text as an answer about itself, and with a citation behind every word."""
    cited = text.replace(" ", " [1]. ")
    return citations.check(text, [text, text[::-1]]), citations.check(cited, [text])


def _stream(text: str) -> object:
    """The text as what a server streams, in pieces that end anywhere, and as the text of its events."""
    whole = _bytes(text)
    lines = _bytes(
        "".join(
            f"data: {json.dumps({'choices': [{'delta': {'content': line}}]})}\n\n"
            for line in text.split("\n")
        )
    )
    for body in (whole, b"data: " + whole, lines):
        stream = event_stream.ChatStream()
        with contextlib.suppress(event_stream.StreamError):
            for at in range(0, len(body), 7):
                stream.feed(body[at : at + 7])
    return event_stream.cut(text, [3] * 10)


def _graph_answer(text: str) -> object:
    """The text as a model's answer about entities, as it is and as what is inside of its lists."""
    nested = "{" + '"a":{' * (len(text) // 8)
    for said in (text, '{"entities": [' + text, '{"relations": [{"source": "' + text, nested):
        with contextlib.suppress(HoldfastError):
            graph_answers.extraction(json.dumps({"content": said, "finish_reason": "length"}).encode())
    return None


def _paid_request(text: str) -> object:
    """What a parser in the child says that it wants, and what its service answers."""
    first = {"provider": "a", "endpoint": text, "model": text, "json": {"a": text + "{file}"}}
    for request in (first, {"provider": text, "endpoint": "a", "model": "b", "form": {"a": text}}):
        with contextlib.suppress(HoldfastError):
            paid.checked("a:b", text, request)
    return document_client._usage(_bytes(text))


def _prompt(text: str) -> object:
    return answer_prompt.user_message(text, [PromptSource(text, text)] * 2, [("user", text)])


def _outline(text: str) -> object:
    """The text as the chunks of a document, and every line of it as a heading too."""
    lines = plain(text).split("\n")
    entries = [(len(line) % 5 + 1, line[:200], number // 50) for number, line in enumerate(lines)]
    chunks = [
        OutlineChunk(
            number, number // 9, plain(text)[at : at + 400], tuple(lines[number % 7 : number % 7 + 2])
        )
        for number, at in enumerate(range(0, len(text), 400))
    ]
    for known in (entries, [], entries[:1]):
        outline = outlines.of_document(OutlineParts("t", known, chunks, ()))
        topic_maps.of_outline([MapLine(line.title, line.depth) for line in outline])
        outlines.fitted(outline, 20)
    return None


def _map_answer(text: str) -> object:
    """The text as what a model answers, and within an answer."""
    topics = [{"title": line, "lines": [number]} for number, line in enumerate(text.split("\n"))]
    for said in (text, '{"topics": ' + text, json.dumps({"topics": topics}), '{"topics":[' * 40 + text):
        reading = topic_maps.read(json.dumps({"content": said}).encode(), 300)
        topic_maps.missing(reading.topics, 300)
    return None


def _map_forms(text: str) -> object:
    topics = [MapTopic("", line, 1, False, False, False, (), 0, ()) for line in text.split("\n")]
    drawn = MindMap(1, text, topics)
    return mind_map_forms.markdown(drawn), mind_map_forms.svg(drawn), mind_map_forms.outline(drawn)


# Read by a library in C: building a tree of deeply nested elements takes the square of their depth. It runs
# in the child alone, where a clock holds; what is found is told, and is no failure of `make fuzz`.
CONFINED = frozenset({"HTML", "RTF", "message", "properties of HTML", "properties of a message"})


def _marked(text: str) -> object:
    """A passage looked for on a page of the same letters in another order, and with one more in front."""
    page = [Glyph(letter, PixelBox(0, 0, 1, 1)) for letter in f"x{text[::-1]}{text}"[: passages.MOST_LETTERS]]
    return passages.boxes(text[: passages.MOST_LETTERS] + "y", page)


TARGETS: dict[str, Target] = {
    "recognise": _sniffed(""),
    "recognise .html": _sniffed("a.html"),
    "recognise .md": _sniffed("a.md"),
    "recognise .json": _sniffed("a.json"),
    "recognise .eml": _sniffed("a.eml"),
    "decode UTF-8": _decoded("utf-8"),
    "decode UTF-16": _decoded("utf-16"),
    "text": texts.plain_pages,
    "Markdown": _markdown,
    "front matter": lambda text: front_matter.split(f"---\n{text}\n---\n{text}"),
    "front matter in TOML": lambda text: front_matter.split(f"+++\n{text}\n+++\n{text}"),
    "properties": _properties,
    "properties of HTML": lambda text: html.properties_of(_bytes(f"<head>{text}")[:262_144]),
    "properties of a message": lambda text: file_properties.mail_properties(lambda _name: text[:4000]),
    "HTML": _file(lambda path: html.read(path, ParseLimits())),
    "CSV": _file(_delimited),
    "JSON": _file(lambda path: json_records.read(path, ParseLimits())),
    "JSON Lines": _file(_json_lines),
    "record": lambda text: json_records.record_text({text[:100]: text.split(), "a": [text, {"b": text}]}),
    "notebook": lambda text: notebooks.pages({"cells": [{"cell_type": "markdown", "source": text.split()}]}),
    "XML": _file(lambda path: xml_text.read(path, ParseLimits())),
    "RTF": lambda text: list(rich_text.blocks("{\\rtf1 " + text)),
    "message": lambda text: mail.pages_of(mail.parsed_eml(_bytes("From: a\nMIME-Version: 1.0\n" + text))),
    "code": source_code.pages,
    "name of a member": containers.plain_name,
    "request of a paid parser": _paid_request,
    "machine data": machine_data.readable_text,
    "lines of a PDF": _pdf_lines,
    "columns and tables of a PDF": _pdf_columns,
    "table": lambda text: list(tables.row_texts([line.split("|") for line in text.split("\n")], headed=True)),
    "cut text": _cut(texts.plain_pages, ChunkOptions()),
    "cut text small": _cut(texts.plain_pages, ChunkOptions(16, 8)),
    "cut text large": _cut(_block(Role.PARAGRAPH), ChunkOptions(100_000, 50_000)),
    "cut by a delimiter": _cut(_block(Role.PARAGRAPH), ChunkOptions(delimiter="a")),
    "cut code": _cut(_block(Role.CODE), ChunkOptions()),
    "cut headings": _cut(_lines(Role.HEADING), ChunkOptions(16)),
    "cut rows": _cut(_lines(Role.ROW), ChunkOptions(16)),
    "cut sorted": _cut(_increasing, ChunkOptions(16)),
    "cut Markdown": _cut(texts.markdown_pages, ChunkOptions(64)),
    "mark a passage": _marked,
    "words": tokenizer.analyse,
    "words to keep": tokenizer.terms_of,
    "words in German": _words_in("de"),
    "words in Arabic": _words_in("ar"),
    "words in Japanese": _words_in("ja"),
    "words in Thai": _words_in("th"),
    "language": lambda text: language.detect([text]),
    "snippet in Japanese": lambda text: _snippet(text, languages.rules("ja")),
    "fold letters": letter_folding.fold,
    "stem": stem.stem,
    "snippet": _snippet,
    "title": lambda text: titles._terms(text, text),
    "mark of a question": lambda text: qa.mark_of(text[: qa.MOST_QUESTION]),
    "extract without a model": _fields,
    "flow": _flow(checker.read),
    "steps of a flow": _flow(lambda text: checker.read(f"flow: a\nversion: 1\nsteps:\n  - {text}")),
    "condition of a flow": _flow(conditions.parse),
    "template of a flow": _flow(templates.parse),
    "clean pages": lambda text: page_cleaning.cleaned(_lines(Role.PARAGRAPH)(text), page_cleaning.ALL),
    "feed": _feed,
    "lines of a Git server": _git_lines,
    "listing of a bucket": _bucket_listing,
    "robots.txt": _robots,
    "sitemap": _sitemap,
    "title of a page": lambda text: page_titles.title_of(_bytes(text)),
    "path and patterns": lambda text: patterns.PathFilter(("*a*b*/*?x",), ("*" + text[:255],)).accepts(text),
    "quote without a model": lambda text: extractive.quotations(text[:4000], [(1, text), (2, text[::-1])], 3),
    "facts": facts.of,
    "check an answer": _checked_answer,
    "stream of a model": _stream,
    "entities of a model": _graph_answer,
    "entities without a model": cooccurrence.graph,
    "names of entities": lambda text: (graph_names.normalised(text), graph_names.displayed(text)),
    "blocks of names": lambda text: graph_names.blocks(
        [name for line in text.split("\n") if (name := graph_names.normalised(line))]
    ),
    "windows": lambda text: graph_windows.windows(text.split("\n")),
    "prompt of an answer": _prompt,
    "outline of a document": _outline,
    "answer with a map": _map_answer,
    "forms of a map": _map_forms,
}
