"""Documents whose own options contradict those of their collection."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.kinds import index
from holdfast.store.library.collections import OwnOptions

NAMED = 5


def check(defaults: index.Choices, options: Mapping[str, Any], own: OwnOptions) -> None:
    """Return if every document can be indexed with these options under its own; otherwise BadRequestError.

    It names the first few documents that stand in the way, and what is wrong with one of them.
    """
    verdicts: dict[str, str] = {}
    conflicts: list[tuple[str, str]] = []
    for document_id, layer in own:
        key = json.dumps(layer, sort_keys=True)
        if key not in verdicts:
            verdicts[key] = _conflict(defaults, options, layer)
        if verdicts[key]:
            conflicts.append((document_id, verdicts[key]))
    if conflicts:
        named = ", ".join(document_id for document_id, _ in conflicts[:NAMED])
        more = f" and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
        message = (
            f"the options of {len(conflicts)} documents contradict these ({named}{more}): {conflicts[0][1]};"
            " nothing was changed; change the options of these documents first"
        )
        raise BadRequestError(message, code="options_conflict")


def _conflict(defaults: index.Choices, options: Mapping[str, Any], layer: Mapping[str, Any]) -> str:
    try:
        index.choices(defaults, options, layer)
    except BadRequestError as error:
        return error.message
    return ""
