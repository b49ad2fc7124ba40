"""`holdfast search`: the best passages, with the words that matched."""

from rich.text import Text

from holdfast.cli import context, terminal
from holdfast.ledger.prices import NANO
from holdfast.search.hits import Hit
from holdfast.service import formatting
from holdfast.service.search_pages import SearchPage, SearchRequest

SHOWN = (
    *("document_id", "title", "collection", "page", "text", "snippet", "score", "generation"),
    *("slice", "position", "chunk_id", "parts", "weak", "edited", "type", "node", "covers", "relevance"),
    *("path", "passages"),
)


def search(request: SearchRequest, *, as_json: bool) -> None:
    """The hits are on standard output, the best at the top."""
    with context.services(None) as services:
        page = services.search.find(request)
    if as_json:
        reply = {
            "hits": list(map(_fields, page.hits)),
            "groups": [
                {"document_id": each.document_id, "title": each.title, "hits": list(map(_fields, each.hits))}
                for each in page.groups
            ],
            "publish_seq": page.publish_seq,
            "legs": page.legs,
            "notices": page.notices,
            "next_offset": page.next_offset,
            "cost": {
                "paid": None if page.spent.unpriced else page.spent.paid / NANO,
                "saved": page.spent.saved / NANO,
                "tokens": page.spent.tokens,
            },
        }
        terminal.show_json(reply)
    else:
        _print(page, request)
        _warn(page, request.collections[0])


def _fields(hit: Hit) -> dict[str, object]:
    return {name: getattr(hit, name) for name in SHOWN}


def _warn(result: SearchPage, collection: str) -> None:
    """What is amiss, below the hits, where it is read last."""
    for notice in result.notices:
        terminal.console().print(terminal.one_line(notice.message), style="care", markup=False)
        if notice.documents:
            terminal.console().print(f"to see the cost and reindex: holdfast reindex -c {collection}")


def _print(page: SearchPage, request: SearchRequest) -> None:
    console = terminal.console()
    if not page.hits and not page.groups:
        console.print("no results")
        return
    for number, hit in enumerate(page.hits, start=request.offset + 1):
        _print_hit(hit, f"{number}. ")
    for number, group in enumerate(page.groups, start=request.offset + 1):
        console.print(Text(f"{number}. ", style="quiet").append(group.title, style="head"), soft_wrap=True)
        for hit in group.hits:
            _print_hit(hit, "   ")
    if page.next_offset is not None:
        console.print(f"more with --offset {page.next_offset}", style="quiet")
    if page.spent.paid_calls:
        console.print(f"paid {formatting.paid(page.spent.paid, page.spent.unpriced_calls)}", style="quiet")


def _print_hit(hit: Hit, before: str) -> None:
    console = terminal.console()
    line = Text(before, style="quiet")
    line.append(hit.title, style="head")
    page = f", page {hit.page}" if hit.page is not None else ""
    about = f"{hit.type} of {len(hit.covers)} documents" if hit.covers else f"generation {hit.generation}"
    line.append(f"{page}  document:{hit.document_id}, {about}  ", style="quiet")
    line.append(" + ".join(part.leg for part in hit.parts), style="quiet")
    if hit.weak:
        line.append("  weak match", style="care")
    if hit.edited:
        line.append("  edited", style="quiet")
    console.print(line, soft_wrap=True)
    if hit.path and hit.type == "chunk":
        steps = " → ".join(terminal.one_line(step.title) for step in hit.path)
        console.print(Text(f"   {steps} → passage", style="quiet"), soft_wrap=True)
    console.print(_snippet(hit), soft_wrap=False)
    for passage in hit.passages:
        page = f", page {passage.page}" if passage.page is not None else ""
        console.print(Text(f"   from {passage.title}{page}  {passage.chunk}", style="quiet"), soft_wrap=True)
    console.print()


def _snippet(hit: Hit) -> Text:
    """The passage on a few lines, with the words that matched standing out."""
    shown = Text(hit.snippet.text)
    for start, end in hit.snippet.marks:
        shown.stylize("good", start, end)
    shown.plain = shown.plain.replace("\n", " ")
    return Text("   ") + shown
