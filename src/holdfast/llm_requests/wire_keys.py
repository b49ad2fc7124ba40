"""What a request to a provider is: which endpoint, which model, and what makes two requests the same.

The key has the provider's fixed identity and the path below its version, not the URL; the body as canonical
JSON, or the parts of a form, whose boundary differs every time; and the headers that change the answer. It
has no credentials, cookies, user agent or timeouts.
"""

import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import BadRequestError
from holdfast.llm_requests.http_messages import HttpRequest

# Hosts of providers with a name of their own. Any other is named by its host and port.
HOSTS = {
    "api.anthropic.com": "anthropic",
    "api.cohere.ai": "cohere",
    "api.cohere.com": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.openai.com": "openai",
    "api.together.xyz": "together",
    "api.voyageai.com": "voyage",
    "api.x.ai": "xai",
    "generativelanguage.googleapis.com": "google",
    "openrouter.ai": "openrouter",
}
# Headers that change what the provider answers.
KEY_HEADERS = ("anthropic-beta", "anthropic-version", "openai-beta", "openai-organization", "openai-project")
# Segments of paths whose POSTs are not paid by the call: they keep state, move files, sign in, or are free.
FREE = frozenset(
    {
        "assistants",
        "auth",
        "batches",
        "cancel",
        "containers",
        "conversations",
        "count_tokens",
        "countTokens",
        "detokenize",
        "files",
        "fine-tuning",
        "fine_tuning",
        "oauth",
        "oauth2",
        "organization",
        "realtime",
        "threads",
        "token",
        "tokenize",
        "uploads",
        "vector_stores",
    }
)
# Endpoints whose answers are the same for the same input; those of all others may be meant to differ.
REPEATABLE = frozenset({"embed", "embedContent", "batchEmbedContents", "embeddings", "rerank", "moderations"})
_VERSION = re.compile(r"v\d{1,3}[a-z0-9]{0,12}", re.ASCII)
_MODEL = re.compile(r"models/([^/:]{1,200}):?")
_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_JSON = "application/json"
_FORM = "multipart/form-data"


class Reuse(StrEnum):
    """To whom an answer may be given again."""

    TENANT = "tenant"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True)
class SdkRequest:
    """A request that is paid for. `text` and `params` are its key, apart from the scope."""

    provider: str
    endpoint: str
    model: str
    text: str = field(repr=False)
    params: Mapping[str, object]
    reuse: Reuse
    streams: bool
    # The body, if it is JSON.
    fields: Mapping[str, Any] = field(repr=False)

    @property
    def is_anthropic(self) -> bool:
        """True if errors have the shape of Anthropic's."""
        return self.endpoint.startswith("messages")


def is_paid(method: str, path: str, content_type: str) -> bool:
    """True if the request goes through the ledger; all others pass through untouched."""
    if method != "POST" or not content_type.lower().startswith((_JSON, _FORM)):
        return False
    segments = re.split(r"[/:]", path)
    return FREE.isdisjoint(segments)


def read(request: HttpRequest, provider: str | None = None) -> SdkRequest:
    """What the request is; BadRequestError for a body that is not what its content type says."""
    url = urllib.parse.urlsplit(request.url)
    path, endpoint = _path(url.path)
    fields, text = _content(request)
    model = fields.get("model")
    if not isinstance(model, str):
        named = _MODEL.search(url.path)
        model = named.group(1) if named else ""
    query = [pair for pair in urllib.parse.parse_qsl(url.query, keep_blank_values=True) if pair[0] != "key"]
    params: dict[str, object] = {"path": path}
    if query:
        params["query"] = sorted(query)
    if headers := {name: value for name in KEY_HEADERS if (value := request.header(name))}:
        params["headers"] = headers
    params |= {name: fields[name] for name in _LIMITS if type(fields.get(name)) is int}
    name = re.split(r"[/:]", endpoint)[-1]
    return SdkRequest(
        provider=provider or identity(url),
        endpoint=endpoint,
        model=model,
        text=text,
        params=params,
        reuse=Reuse.TENANT if name in REPEATABLE else Reuse.SCOPE,
        streams=fields.get("stream") is True or name == "streamGenerateContent",
        fields=fields,
    )


def identity(url: urllib.parse.SplitResult) -> str:
    """The name of the provider behind a URL."""
    host = url.hostname or ""
    return HOSTS.get(host) or (host if url.port in {None, 80, 443} else f"{host}:{url.port}")


def _path(path: str) -> tuple[str, str]:
    """The path from its version on, and below it."""
    segments = [segment for segment in path.split("/") if segment]
    at = max((number for number, each in enumerate(segments) if _VERSION.fullmatch(each)), default=-1)
    return "/".join(segments[max(at, 0) :]), "/".join(segments[at + 1 :])


def _content(request: HttpRequest) -> tuple[Mapping[str, Any], str]:
    """The fields of a JSON body, and what identifies the body."""
    sent_as = request.header("content-type")
    if sent_as.lower().startswith(_FORM):
        return {}, _form(request.body, sent_as)
    try:
        body = json.loads(request.body)
        return (body if isinstance(body, dict) else {}), keys.canonical(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body of the request is no JSON ({error})", code="not_json") from error


def _form(body: bytes, sent_as: str) -> str:
    """The parts of a form as JSON: field, file name, type and digest of each."""
    boundary = sent_as.partition("boundary=")[2].partition(";")[0].strip().strip('"')
    if not boundary:
        raise BadRequestError("a form without a boundary", code="bad_form")
    parts = []
    for part in body.split(b"--" + boundary.encode("latin-1"))[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        lines = sorted(line.strip().lower() for line in head.decode("utf-8", "replace").split("\r\n"))
        named = [line for line in lines if line.startswith(("content-disposition:", "content-type:"))]
        parts.append([*named, keys.digest(content.removesuffix(b"\r\n"))])
    return keys.canonical(parts)
