"""Why something failed or waits, in a few categories that a person can act on.

`quota`: money or allowance is used up. `auth`: the provider denies access. `rate_limit`: too fast for the
provider. `content`: this input, or the response to it, cannot be used. `provider_down`: the provider does not
respond. `internal`: anything else, for the operator.
"""

from typing import Literal, get_args

Category = Literal["quota", "auth", "rate_limit", "content", "provider_down", "internal"]
CATEGORIES: tuple[str, ...] = get_args(Category)

OF_CODE: dict[str, Category] = {
    "provider_quota": "quota",
    "over_budget": "quota",
    "unpriced": "quota",
    "over_max_cost": "quota",
    "provider_auth": "auth",
    "provider_rejected": "content",
    "provider_unavailable": "provider_down",
    "content_filtered": "content",
    "bad_answer": "content",
    "answer_cut": "content",
    "invalid_answer": "content",
    "nothing_found": "content",
    "nothing_ready": "content",
    "documents_changed": "content",
    "no_text": "content",
    "unreadable_answer": "content",
    "answer_too_large": "content",
    "bad_call": "content",
    "bad_bundle": "content",
    "newer_bundle": "content",
    "too_large": "content",
    "bad_option": "content",
    "bad_digest": "content",
}
OF_WAIT: dict[str, Category] = {
    "budget": "quota",
    "rate": "rate_limit",
    "provider": "provider_down",
    "parser": "provider_down",
    "relay": "provider_down",
    "parked": "provider_down",
}


def of_code(code: str) -> Category:
    """The category of a failed run's code."""
    return OF_CODE.get(code, "internal")


def of_wait(reason: str) -> Category:
    """The category of what a task waits for."""
    return OF_WAIT.get(reason, "internal")
