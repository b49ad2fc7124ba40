"""What a request to the gateway asks for: endpoint, provider, scope and how often anew.

    /gateway[/provider/NAME][/scope/NAME]/v1/ENDPOINT

The base URL of an OpenAI client ends with `/v1`, that of an Anthropic client comes before it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.gateway.refusals import RefusedError, refusal
from holdfast.llm_requests import wire_keys
from holdfast.llm_requests.http_messages import HttpAnswer

PREFIX = "/gateway/"
ENDPOINTS = {
    "chat/completions": "openai",
    "embeddings": "openai",
    "messages": "anthropic",
    "responses": "openai",
}
SCOPE_HEADER = "holdfast-scope"
AGAIN_HEADER = "holdfast-again"
SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}", re.ASCII)
AGAIN = re.compile(r"[0-9]{1,4}", re.ASCII)
_PATH = re.compile(
    r"/gateway(?:/provider/(?P<provider>[^/]{1,100}))?(?:/scope/(?P<scope>[^/]{1,300}))?/v1/(?P<endpoint>.{1,100})",
    re.ASCII,
)
# Passed on to the provider, and part of the key; no other header changes an answer.
PASSED_ON = frozenset({*wire_keys.KEY_HEADERS, "accept", "content-type"})


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A request before its body is read. `again` is 0 for the usual answer, n for the nth one after it."""

    endpoint: str
    provider: str | None
    scope: str | None
    again: int
    headers: Sequence[tuple[str, str]] = field(repr=False)

    @property
    def is_anthropic(self) -> bool:
        """True if errors have Anthropic's shape."""
        return ENDPOINTS.get(self.endpoint) == "anthropic"

    def refusal(
        self,
        status: int,
        *,
        code: str,
        message: str,
        retry_after: float | None = None,
        may_retry: bool = False,
    ) -> HttpAnswer:
        """An error in the shape of this endpoint."""
        return refusal(
            status,
            code=code,
            message=message,
            anthropic=self.is_anthropic,
            retry_after=retry_after,
            may_retry=may_retry,
        )


def read(method: str, path: str, headers: Sequence[tuple[str, str]]) -> GatewayRequest:
    """What is asked for; RefusedError for a path or a header that means nothing here."""
    match = _PATH.fullmatch(path)
    endpoint = match["endpoint"] if match else ""
    named = {name: value for name, value in headers if name in {SCOPE_HEADER, AGAIN_HEADER}}
    anthropic = ENDPOINTS.get(endpoint) == "anthropic"
    if match is None or endpoint not in ENDPOINTS:
        known = ", ".join(sorted(ENDPOINTS))
        message = f"the gateway has no endpoint {path[:200]!r}; it has {PREFIX}v1/ with {known}"
        # A path that is no endpoint has Anthropic's shape where only its client library can have sent it.
        anthropic = any(name == "anthropic-version" for name, _ in headers)
        raise RefusedError(refusal(404, code="unknown_endpoint", message=message, anthropic=anthropic))
    if method != "POST":
        message = f"{endpoint} takes POST, not {method[:20]}"
        raise RefusedError(refusal(405, code="method_not_allowed", message=message, anthropic=anthropic))
    scope, again = _scope(match["scope"], named.get(SCOPE_HEADER), anthropic=anthropic), 0
    if (said := named.get(AGAIN_HEADER)) is not None:
        if not AGAIN.fullmatch(said):
            message = "Holdfast-Again is a number: 1 for the next answer, 2 for the one after it"
            raise RefusedError(refusal(400, code="bad_again", message=message, anthropic=anthropic))
        again = int(said)
    passed = tuple((name, value) for name, value in headers if name in PASSED_ON)
    return GatewayRequest(endpoint, match["provider"], scope, again, passed)


def _scope(in_path: str | None, in_header: str | None, *, anthropic: bool) -> str | None:
    names = {name for name in (in_path, in_header) if name}
    if len(names) > 1:
        message = "the URL and Holdfast-Scope name different scopes; use one"
        raise RefusedError(refusal(400, code="bad_scope", message=message, anthropic=anthropic))
    if not names:
        return None
    (name,) = names
    if not SCOPE.fullmatch(name):
        message = "a scope is letters, digits and . _ : @ + -, at most 200"
        raise RefusedError(refusal(400, code="bad_scope", message=message, anthropic=anthropic))
    return name
