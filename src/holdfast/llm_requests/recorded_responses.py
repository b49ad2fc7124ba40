"""A response as the ledger keeps it: a line of JSON with status and headers, then the body, byte for byte."""

import json
from collections.abc import Mapping

from holdfast.llm_requests.http_messages import CHARGE_HEADER, HOP_BY_HOP, HttpAnswer

# Headers that are still true when the response is given again. No others are kept: some name the caller.
KEPT = frozenset({"content-type", "openai-processing-ms", "openai-version", "request-id", "x-request-id"})


def recorded(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """The response as it is kept."""
    head = {"status": status, "headers": {name: value for name, value in headers.items() if name in KEPT}}
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + body


def replayed(record: bytes, charge: str) -> HttpAnswer:
    """The response again; `charge` says whether it was paid for just now."""
    head, _, body = record.partition(b"\n")
    facts = json.loads(head)
    return HttpAnswer(facts["status"], {**facts["headers"], CHARGE_HEADER: charge}, body)


def passed_on(status: int, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
    """The provider's response as its client library gets it."""
    return HttpAnswer(status, {n: v for n, v in headers.items() if n not in HOP_BY_HOP}, body)
