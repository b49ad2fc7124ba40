"""What the tools take, and what is said of them to a model."""

from typing import Annotated, Any

import pydantic
from pydantic import ConfigDict, Field

from holdfast.integrations.library import MOST_TEXT

Collections = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Field(max_length=20, description="Ids of collections, see list_collections. Default: all of them."),
]


class ToolArguments(pydantic.BaseModel):
    """What a tool takes; anything else is refused."""

    model_config = ConfigDict(extra="forbid")


class NoArguments(ToolArguments):
    """Nothing."""


class SearchArguments(ToolArguments):
    """A search."""

    query: Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for.")]
    collections: Collections = Field(default_factory=list)
    k: Annotated[int, Field(ge=1, le=50, description="How many passages.")] = 10
    filter: Annotated[
        dict[str, Any] | None,
        Field(description='Only documents with such metadata, like {"eq": {"author": "Ann"}}.'),
    ] = None


class FetchArguments(ToolArguments):
    """A document to read."""

    id: Annotated[str, Field(min_length=1, max_length=300, description="The `id` of a search result.")]
    offset: Annotated[
        int, Field(ge=0, le=10**12, description="Where to begin: `next_offset` of the part before.")
    ] = 0


class AskArguments(ToolArguments):
    """A question."""

    question: Annotated[str, Field(min_length=1, max_length=4_000, description="The question.")]
    collections: Collections = Field(default_factory=list)
    k: Annotated[int, Field(ge=1, le=30, description="Passages that the answer may be made from.")] = 8


DESCRIPTIONS: dict[str, tuple[type[ToolArguments], str]] = {
    "search": (
        SearchArguments,
        (
            "Find the passages of the documents that match a query best, by words and by meaning. Each "
            "result has the document's id (for fetch), title, page, text and a url to cite."
        ),
    ),
    "fetch": (
        FetchArguments,
        f"Read the text of a document by its id, {MOST_TEXT:,} characters at a time.",
    ),
    "list_collections": (NoArguments, "List the collections of documents that can be searched."),
    "ask": (
        AskArguments,
        (
            "Answer a question from the documents with checked citations. This costs money: the language "
            "model of the server is paid for each new question (the same question again is free). Prefer "
            "search if you can answer from passages yourself."
        ),
    ),
}
