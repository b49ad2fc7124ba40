"""A paid call that a parser needs: what the child asks for, and what its owner does about it.

The child has no network. A parser that needs a paid service says which request it wants (`PaidRequest`). The
owner makes the call through the ledger and asks the child again, with the answer (`PaidAnswer`).

The child reads hostile files, so its request is checked by its owner too: it names a provider of the settings
and a path below that provider's URL, and the file that is sent is always the one that is being read.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import WorkError
from holdfast.core.text import is_plain

# Where the file, in base64, goes into a JSON body.
FILE = "{file}"
MOST_REQUEST = 64 * 1024
MOST_PAGES = 1_000_000
_ENDPOINT = re.compile(r"[A-Za-z0-9_.~:@-]+(/[A-Za-z0-9_.~:@-]+){0,20}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+ -]{0,99}")
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,100}")
_FIELD = re.compile(r"[A-Za-z0-9_.\[\]-]{1,100}")
_KNOWN = frozenset(
    {"provider", "endpoint", "model", "json", "form", "file_field", "query", "content_type", "pages"}
)


@dataclass(frozen=True, slots=True)
class PaidRequest:
    """A request that a parser wants to be made for a file.

    `message` is what is sent around the file; it, the parser and its version are part of the content key.
    `pages` is the number of pages of the file, 0 if it is not known; it is used for prices alone.
    """

    parser: str
    version: str
    provider: str
    endpoint: str
    model: str
    message: Mapping[str, Any] = field(default_factory=dict)
    pages: int = 0

    @property
    def params(self) -> dict[str, object]:
        """What the answer depends on beside provider, endpoint, model and file."""
        return {"parser": self.parser, "version": self.version, "message": dict(self.message)}


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """What the service answered. `key` is the content key of the call."""

    key: str
    content: bytes = field(repr=False)


class PaidCallNeededError(Exception):
    """The file is read by a parser that needs the answer of a paid service first; its caller pays for it."""

    def __init__(self, request: PaidRequest) -> None:
        super().__init__(f"the parser {request.parser} needs an answer of {request.provider} first")
        self.request = request


def checked(parser: str, version: object, value: object, pages: int = 0) -> PaidRequest:
    """The request that a parser returned; WorkError `parser_unfit` says what is wrong with it."""
    if not isinstance(value, Mapping):
        raise _unfit(parser, "it must be a dict, or None")
    if unknown := sorted(str(name) for name in value if name not in _KNOWN):
        raise _unfit(parser, f"there is no {unknown[0]!r:.60}; known are: {', '.join(sorted(_KNOWN))}")
    if "json" in value and "form" in value:
        raise _unfit(parser, "it has json and form; use one of them")
    own = value.get("pages", pages)
    if type(own) is not int or not 0 <= own <= MOST_PAGES:
        raise _unfit(parser, f"pages must be a whole number up to {MOST_PAGES:,}")
    names = {name: value.get(name, "") for name in ("provider", "endpoint", "model")}
    request = {**names, "message": _message(parser, value), "parser": parser, "version": str(version or "1")}
    return _checked(request | {"pages": own})


def _message(parser: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """The request around the file: a JSON body, a form, or the file alone; and a query."""
    message: dict[str, Any] = {}
    if value.get("query"):
        message["query"] = _texts(parser, "query", value["query"])
    if "json" in value:
        message["json"] = value["json"]
        return message
    message["content_type"] = str(value.get("content_type", "application/octet-stream"))
    if "form" in value:
        message["form"] = _texts(parser, "form", value["form"])
        message["file_field"] = str(value.get("file_field", "file"))
    return message


def _texts(parser: str, name: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _unfit(parser, f"{name} must be a dict")
    return {str(key): str(text) for key, text in value.items()}


def to_wire(request: PaidRequest) -> dict[str, Any]:
    """The request as JSON."""
    return {**asdict(request), "message": dict(request.message)}


def from_wire(value: Any) -> PaidRequest:
    """The request in a message of the child; WorkError `parser_unfit` if it is wrong."""
    return _checked(dict(value))


def _checked(value: Mapping[str, Any]) -> PaidRequest:
    """The request, if it can be made as it is."""
    parser = str(value["parser"])[:200]
    request = PaidRequest(
        parser,
        str(value["version"])[:100],
        str(value["provider"]),
        str(value["endpoint"]),
        str(value["model"]),
        dict(value["message"]),
        min(MOST_PAGES, max(0, int(value["pages"]))),
    )
    if not _NAME.fullmatch(request.provider):
        raise _unfit(parser, "provider must be the name of a [providers.NAME]")
    if not _NAME.fullmatch(request.model):
        raise _unfit(parser, "model must be the name under which the service is priced and billed")
    steps = request.endpoint.split("/")
    if len(request.endpoint) > MOST_PATH or not _ENDPOINT.fullmatch(request.endpoint) or ".." in steps:
        raise _unfit(parser, "endpoint must be a path below the base_url, such as documents/parse")
    _check_message(parser, request.message)
    return request


MOST_PATH = 200


def _check_message(parser: str, message: Mapping[str, Any]) -> None:
    text = keys.canonical(dict(message))
    if len(text) > MOST_REQUEST or not is_plain(text):
        raise _unfit(parser, f"it must be plain JSON of at most {MOST_REQUEST:,} characters")
    if "json" in message:
        if not isinstance(message["json"], Mapping) or keys.canonical(message["json"]).count(FILE) != 1:
            raise _unfit(parser, f"json must be a dict with {FILE} once in one of its texts")
    elif not _MEDIA_TYPE.fullmatch(str(message.get("content_type"))):
        raise _unfit(parser, "content_type must be like application/pdf")
    fields = [*dict(message.get("form", {})), str(message.get("file_field", "file"))]
    if not all(_FIELD.fullmatch(name) for name in fields):
        raise _unfit(parser, "the names of form fields may have letters, digits and _ . - [ ]")


def _unfit(parser: str, why: str) -> WorkError:
    return WorkError(f"the request of {parser} cannot be made: {why}", code="parser_unfit")
