"""Kinds as users write them, importing from `holdfast` alone."""

from dataclasses import dataclass
from typing import Any

import pydantic

from holdfast import (
    BadRequestError,
    JobResult,
    JobSpec,
    Kind,
    SearchQuery,
    SearchSource,
    SourceHit,
    document_kind,
    published_results,
)


@dataclass
class Letters:
    """Parameters as a dataclass."""

    letter: str
    upper: bool = False


class Bounds(pydantic.BaseModel):
    """Parameters as a Pydantic model."""

    least: int = pydantic.Field(default=1, ge=1, le=9, title="Shortest word")
    unit: str | None = None


def letters(work: Any, document: Any, _model: Any) -> Any:
    letter = work.options["letter"].upper() if work.options["upper"] else work.options["letter"]
    if letter == "?":
        raise BadRequestError("this should have been checked")
    yield JobResult({"letter": letter, "count": document.text.count(letter)}, page=document.passages[0].page)


def words(work: Any, document: Any, _model: Any) -> Any:
    return [{"words": [word for word in document.text.split() if len(word) >= work.options["least"]]}]


def find(query: SearchQuery) -> list[SourceHit]:
    if "boom" in query.text:
        raise ValueError("boom")
    results = published_results(query, "letters")
    hits = [SourceHit(each.document, f"{each.data['letter']}: {query.text}", 1.0) for each in results]
    return [*hits, SourceHit("of-nobody", "not there", 2.0)]


def one_letter(params: dict[str, Any]) -> dict[str, Any]:
    if len(params["letter"]) != 1:
        raise BadRequestError("letter must be one letter", code="bad_params")
    return params


def described(work: Any) -> dict[str, Any]:
    return {"of": work.subject, "note": work.options["note"]}


KINDS = [
    document_kind(
        "letters",
        letters,
        JobSpec(
            title="Letters",
            parameters=Letters,
            check=one_letter,
            result={
                "type": "object",
                "properties": {"letter": {"type": "string"}, "count": {"type": "integer"}},
            },
            view="{{ results[0].data.nothing.at_all }}",
        ),
        search=SearchSource("letters", find),
    ),
    document_kind(
        "words", words, JobSpec(title="Words", parameters=Bounds, estimate=lambda *_: ()), per_slice=1
    ),
    # Not of documents, and of nothing but the protocol.
    Kind(
        "note",
        described,
        job=JobSpec(
            title="Note",
            parameters={"type": "object", "properties": {"note": {"type": "string", "default": "none"}}},
            reads_documents=False,
        ),
    ),
]
