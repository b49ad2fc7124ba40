"""A flow as it is carried out: its steps, checked, in order.

What a flow leaves out is as without a flow. The order of the kinds of steps is fixed, so that a file reads as
what happens: parse, clean, split, then enrich, extract and python in any order, embed, publish.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.core import keys
from holdfast.kinds.flows.conditions import Condition, Fields
from holdfast.kinds.flows.templates import Template

CHUNK, DOCUMENT = "chunk", "document"
FAIL, SKIP = "fail", "skip"
# Incremented whenever the same step with the same parameters would give something else.
VERSIONS = {"enrich": 1, "extract": 1, "python": 1, "clean": 1, "embed": 1, "publish": 1}
# Fields that every item has. A step reads them by these names, so that no step can be called so.
OF_DOCUMENT = ("format", "language", "metadata", "name", "pages", "title")
OF_CHUNK = ("headings", "page", "position", "text")
# What a document step may read: `text` is then that of the whole document.
BUILT_IN = frozenset({*OF_DOCUMENT, *OF_CHUNK})


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, parameters and conditions. `number` counts from 1; `line` is where it stands."""

    kind: str
    number: int
    line: int
    params: Mapping[str, Any] = field(default_factory=dict)
    when: Condition | None = None
    on_error: str = FAIL
    # What the model is shown, or what is embedded.
    template: Template | None = None

    @property
    def name(self) -> str:
        """The field that it makes; the kind for a step that makes none."""
        return str(self.params.get("name", self.kind))

    @property
    def per(self) -> str:
        """Whether it is done for each chunk or for the document."""
        return str(self.params.get("per", CHUNK))

    @property
    def makes_field(self) -> bool:
        """True for a step whose output is a field."""
        return self.kind in {"enrich", "extract", "python"}

    def is_for(self, fields: Fields) -> bool:
        """True if its condition holds."""
        return self.when is None or self.when.holds(fields)

    @property
    def reads(self) -> frozenset[str]:
        """The fields that its output depends on, its condition apart."""
        if self.kind == "python":
            return frozenset(self.params["reads"])
        return frozenset(self.template.reads) if self.template is not None else frozenset()

    def described(self) -> dict[str, Any]:
        """The step as a file would say it, complete; what two versions are compared by."""
        body = {name: value for name, value in self.params.items() if value is not None}
        shown: dict[str, Any] = {self.kind: body}
        if self.when is not None:
            shown["when"] = self.when.text
        if self.on_error != FAIL:
            shown["on_error"] = self.on_error
        return shown


@dataclass(frozen=True)
class Flow:
    """A version of a flow. `source` is its text as it was given, `files` the schemas that it names."""

    name: str
    version: int
    steps: Sequence[Step]
    source: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """As a collection names it."""
        return f"{self.name}@{self.version}"

    def of_kind(self, *kinds: str) -> list[Step]:
        """Its steps of these kinds, in order."""
        return [step for step in self.steps if step.kind in kinds]

    @property
    def makers(self) -> list[Step]:
        """The steps that make fields, in order."""
        return [step for step in self.steps if step.makes_field]

    @cached_property
    def digest(self) -> str:
        """The same for flows that do the same, whatever their names, comments and spacing."""
        return keys.digest("flow", keys.canonical(self.described()))

    @cached_property
    def working_digest(self) -> str:
        """As `digest`, of all that the chunks of a slice depend on beside the parser and its options."""
        done = [step.described() for step in self.steps if step.kind not in {"parse", "split"}]
        return keys.digest("flow steps", keys.canonical(done), keys.canonical(VERSIONS))

    def described(self) -> list[dict[str, Any]]:
        """Its steps as a file would say them, complete."""
        return [step.described() for step in self.steps]

    @property
    def reads_whole_document(self) -> bool:
        """True if a step needs all the text at once: then the document is one slice."""
        return any(step.per == DOCUMENT for step in self.makers)

    @cached_property
    def document_reads(self) -> frozenset[str]:
        """The paths of title, name and metadata that it reads anywhere; `metadata` alone for all of it."""
        read = {name for step in self.steps for name in step.reads}
        read |= {name for step in self.steps if step.when is not None for name in step.when.reads}
        return frozenset(
            name for name in read if name in {"title", "name"} or name.partition(".")[0] == "metadata"
        )

    @property
    def reads_pages(self) -> bool:
        """True if a condition, a prompt or a function looks at the number of pages of the document."""
        read = {
            name for step in self.steps for name in (*step.reads, *(step.when.reads if step.when else ()))
        }
        return "pages" in read

    def search_fields(self) -> Sequence[str]:
        """The fields whose words are searched."""
        publish = self.of_kind("publish")
        return publish[0].params["search"] if publish else ("text",)

    def shown_fields(self) -> Sequence[str]:
        """The fields that search hits carry."""
        publish = self.of_kind("publish")
        return publish[0].params["fields"] if publish else ()
