"""The `ask` command and its options."""

from typing import Annotated

import typer

from holdfast.cli.options import (
    FilterText,
    Json,
    MaxCost,
    ModeOption,
    RerankerName,
    RerankFlag,
    SearchMode,
    Tenant,
    filter_of,
)


def register(app: typer.Typer) -> None:
    """The command is one of the program's own."""
    app.command()(ask)


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Collection to ask. Repeatable.")
    ] = None,
    tenant: Tenant = "default",
    sources: Annotated[
        int, typer.Option("--sources", "-k", min=1, max=30, help="Passages that the answer may be made from.")
    ] = 8,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=16, max=4000, help="Output limit of the model.")
    ] = 600,
    mode: ModeOption = SearchMode.HYBRID,
    passing: FilterText = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask anew and pay, though the answer is known.")
    ] = False,
    max_cost: MaxCost = None,
    rerank: RerankFlag = None,
    reranker: RerankerName = None,
    as_json: Json = False,
) -> None:
    """Answer a question from published documents, with citations.

    Exit code 5: nothing was found that holds an answer.
    """
    from holdfast.cli import ask_command, costs  # noqa: PLC0415 - so that `holdfast --help` is quick
    from holdfast.service.answers import AskRequest  # noqa: PLC0415
    from holdfast.service.search_pages import modes  # noqa: PLC0415

    matching, by_graph = modes(mode.value)
    request = AskRequest(
        tenant,
        collection or ["default"],
        question,
        sources,
        only=filter_of(passing),
        mode=matching,
        graph=by_graph,
        max_tokens=max_tokens,
        fresh=fresh,
        max_cost=costs.nano_dollars(max_cost),
        rerank=reranker or rerank,
    )
    raise typer.Exit(ask_command.ask(request, as_json=as_json))
