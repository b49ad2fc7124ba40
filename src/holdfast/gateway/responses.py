"""Responses that the gateway passes on or gives again, with what they cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.llm_requests.http_messages import CHARGE_HEADER, HttpAnswer
from holdfast.providers import wire

COST_HEADER = "holdfast-cost"
ORDER_HEADER = "holdfast-order"
# Headers of the provider that are of use to a client library. No others: some name the account that pays.
PASSED_ON = frozenset(
    {
        "content-type",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    }
)
LIMITS = ("x-ratelimit-", "anthropic-ratelimit-")
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Charged:
    """What a request came to. `charge` is `paid`, `reused`, `waited` or `none`; money is in nano-dollars."""

    charge: str = "none"
    cost: int = 0
    order_id: str = ""
    reused_calls: int = 0
    saved: int = 0

    def joined(self) -> "Charged":
        """The same for somebody who only waited for it."""
        return (
            replace(self, charge="waited", reused_calls=1, saved=self.cost) if self.charge == "paid" else self
        )

    @property
    def headers(self) -> dict[str, str]:
        """As a client sees it."""
        headers = {CHARGE_HEADER: self.charge}
        if self.cost:
            headers[COST_HEADER] = f"{self.cost / NANO:.9f}".rstrip("0").rstrip(".")
        if self.order_id:
            headers[ORDER_HEADER] = self.order_id
        return headers


def useful(headers: Mapping[str, str]) -> dict[str, str]:
    """The provider's headers that are passed on."""
    return {name: value for name, value in headers.items() if name in PASSED_ON or name.startswith(LIMITS)}


def passed_on(reply: wire.HttpReply, secret: str) -> HttpAnswer:
    """The provider's response, byte for byte; `secret` is removed from what is no success."""
    body = reply.body
    if secret and not 200 <= reply.status < 300:
        body = body.replace(secret.encode(), b"***")
    return HttpAnswer(reply.status, useful(reply.headers), body)


def code_of(answer: HttpAnswer) -> str:
    """The code of an error, for the list of errors; empty for a success."""
    if answer.status < 400:
        return ""
    try:
        detail = json.loads(answer.body)["error"]
        code = str(detail.get("code") or detail.get("type") or "")
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        code = ""
    plain = "".join(each for each in code if each.isprintable() and each.isascii())
    return plain[:60] or f"status_{answer.status}"
