"""An MCP server over a library: four tools, and documents as resources.

It holds nothing between two requests, so that any process can answer each of them. What the library refuses
is an error of the tool, with our code and message, which the model can read.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import mcp_types as types
import pydantic
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

import holdfast
from holdfast.core.errors import HoldfastError, NotFoundError
from holdfast.integrations.library import Library, LibraryHit
from holdfast.mcp import arguments
from holdfast.mcp.arguments import AskArguments, FetchArguments, SearchArguments

T = TypeVar("T")
Run = Callable[[str, Callable[[], T]], Awaitable[T]]
"""Runs what a tool does in a thread; the name of the tool says how long it may wait, and for whom."""

# Characters of a passage that a search returns, and collections that are listed: a model reads all of it.
MOST_PASSAGE = 4_000
MOST_LISTED = 500
SCHEME = "holdfast://documents/"
INSTRUCTIONS = (
    "Documents that people have uploaded to Holdfast. Use search to find passages, fetch to read a whole "
    "document, and cite the url of what you use. ask costs money."
)


class LibraryTools:
    """The handlers of a server, for one library."""

    def __init__(self, library: Library, run: Run[Any]) -> None:
        self._library = library
        self._run = run

    def server(self) -> Server[Any]:
        """The server that has them."""
        return Server(
            "holdfast",
            title="Holdfast",
            version=holdfast.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )

    async def list_tools(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Every tool with what it takes."""
        tools = [
            types.Tool(
                name=name,
                description=description,
                input_schema=model.model_json_schema(),
                annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=name == "ask"),
            )
            for name, (model, description) in arguments.DESCRIPTIONS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """What the tool found; what went wrong is a result that says so."""
        known = arguments.DESCRIPTIONS.get(params.name)
        if known is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no tool {params.name!r:.80}")
        try:
            read = known[0].model_validate(params.arguments or {})
            result = await self._run(params.name, lambda: self._called(read))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return _failed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "bad_request")
        except HoldfastError as error:
            return _failed(error.message, error.code)
        text = types.TextContent(type="text", text=json.dumps(result, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=result)

    def _called(self, read: pydantic.BaseModel) -> dict[str, Any]:
        match read:
            case SearchArguments():
                hits = self._library.search(read.query, read.collections, read.k, read.filter)
                return {"results": [_result(each) for each in hits]}
            case FetchArguments():
                document = self._library.read(read.id.partition("@")[0], read.offset)
                return asdict(document)
            case AskArguments():
                return dict(self._library.ask(read.question, read.collections, read.k).fields)
            case _:
                every = self._library.collections()
                shown = {"collections": [asdict(each) for each in every[:MOST_LISTED]]}
                return shown | ({"left_out": len(every) - MOST_LISTED} if len(every) > MOST_LISTED else {})

    async def list_resources(
        self, _context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The documents, collection by collection; the cursor has the collection and its own cursor."""
        cursor = params.cursor if params is not None else None
        resources, following = await self._run("list_resources", lambda: self._listed(cursor))
        return types.ListResourcesResult(resources=resources, next_cursor=following)

    def _listed(self, cursor: str | None) -> tuple[list[types.Resource], str | None]:
        names = [each.id for each in self._library.collections()]
        name, _, position = (cursor or "").partition("\n")
        if not names or (cursor and name not in names):
            return [], None
        name = name or names[0]
        try:
            documents, following = self._library.documents(name, position or None)
        except HoldfastError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=error.message) from error
        resources = [
            types.Resource(
                name=each.title, title=each.title, uri=f"{SCHEME}{each.id}", mime_type="text/plain",
                description=f"A document of the collection {each.collection}; {each.url}",
            )
            for each in documents
            if each.generation
        ]  # fmt: skip
        after = names[names.index(name) + 1 :]
        if following is not None:
            return resources, f"{name}\n{following}"
        return resources, f"{after[0]}\n" if after else None

    async def list_templates(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """How a document is named."""
        template = types.ResourceTemplate(
            name="document",
            title="Document",
            uri_template=f"{SCHEME}{{id}}",
            mime_type="text/plain",
            description="The published text of a document.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, _context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The beginning of the document's text; `_meta` says where it goes on."""
        uri = str(params.uri)
        try:
            if not uri.startswith(SCHEME):
                raise NotFoundError(f"there is no resource {uri!r:.80}", code="unknown_document")
            document = await self._run("fetch", lambda: self._library.read(uri.removeprefix(SCHEME)))
        except HoldfastError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=error.message, data={"uri": uri}) from error
        about: Mapping[str, Any] = {"url": document.url, "next_offset": document.next_offset}
        contents = types.TextResourceContents(
            uri=uri, mime_type="text/plain", text=document.text, _meta=dict(about)
        )
        return types.ReadResourceResult(contents=[contents])


def _result(hit: LibraryHit) -> dict[str, Any]:
    """A hit as a model reads it: a passage that is long is cut, and `fetch` has all of it."""
    text = hit.text if len(hit.text) <= MOST_PASSAGE else f"{hit.text[:MOST_PASSAGE]}…"
    return {"id": hit.document_id} | asdict(hit) | {"text": text}


def _failed(message: str, code: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=f"{message} [{code}]")
    return types.CallToolResult(content=[text], is_error=True)
