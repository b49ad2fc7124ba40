"""`holdfast search`: the best passages, with the words that matched."""

from rich.text import Text

from holdfast.cli import context, terminal
from holdfast.core.filters import Filter
from holdfast.search.searcher import Found, Hit, Mode

SHOWN = tuple(
    "document_id title page text snippet score generation slice position chunk_id parts".split()  # noqa: SIM905
)


def search(
    question: str,
    *,
    collection: str,
    tenant: str,
    k: int,
    mode: Mode,
    only: Filter | None,
    as_json: bool,
) -> None:
    """The hits are on standard output, the best at the top."""
    with context.services(None) as services:
        result = services.search.search(tenant, collection, question, k=k, mode=mode, only=only)
    if as_json:
        hits = [{name: getattr(hit, name) for name in SHOWN} for hit in result.hits]
        reply = {
            "hits": hits,
            "publish_seq": result.publish_seq,
            "legs": result.legs,
            "notices": result.notices,
        }
        terminal.show_json(reply)
    else:
        _print(result)
        _warn(result, collection)


def _warn(result: Found, collection: str) -> None:
    """What is amiss, below the hits, where it is read last."""
    for notice in result.notices:
        terminal.console().print(terminal.one_line(notice.message), style="care", markup=False)
        if notice.documents:
            terminal.console().print(f"to see the cost and reindex: holdfast reindex -c {collection}")


def _print(result: Found) -> None:
    console = terminal.console()
    if not result.hits:
        console.print("no results")
        return
    for number, hit in enumerate(result.hits, start=1):
        page = f", page {hit.page}" if hit.page is not None else ""
        line = Text(f"{number}. ", style="quiet")
        line.append(hit.title, style="head")
        line.append(f"{page}  document:{hit.document_id}, generation {hit.generation}  ", style="quiet")
        line.append(" + ".join(part.leg for part in hit.parts), style="quiet")
        console.print(line, soft_wrap=True)
        console.print(_snippet(hit), soft_wrap=False)
        console.print()


def _snippet(hit: Hit) -> Text:
    """The passage on a few lines, with the words that matched standing out."""
    shown = Text(hit.snippet.text)
    for start, end in hit.snippet.marks:
        shown.stylize("good", start, end)
    shown.plain = shown.plain.replace("\n", " ")
    return Text("   ") + shown
