"""Content keys and digests: what makes two paid inputs the same input.

The key covers tenant, provider, endpoint, model, parameters and text (G5). Fields are length-prefixed, so no
choice of values can make two different inputs collide by concatenation. The digest is blake2b-256: a
collision would hand one input's result to another, so a fast non-cryptographic hash is not enough.
"""

import hashlib
import json
from collections.abc import Mapping

from holdfast.core.errors import BadRequestError

KEY_VERSION = b"holdfast-call-1"
# Created once: `json.dumps` would create one for every value.
_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: object) -> str:
    """The canonical JSON of `value`: sorted keys, no spaces, no NaN."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = (
            f"value cannot be written as JSON ({error}); use strings, numbers, booleans, lists and objects"
        )
        raise BadRequestError(message, code="not_json") from error


def digest(*parts: bytes | str) -> str:
    """Hex digest of the parts, each prefixed with its length."""
    prefixed: list[bytes] = []
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        prefixed += (len(raw).to_bytes(8, "big"), raw)
    return hashlib.blake2b(b"".join(prefixed), digest_size=32).hexdigest()


def spelled(params: Mapping[str, object]) -> str:
    """The parameters of a call as canonical JSON; most have none."""
    return canonical(dict(params)) if params else "{}"


def call_key(
    *, tenant: str, provider: str, endpoint: str, model: str, params: Mapping[str, object], text: str
) -> str:
    """The content key of one paid call."""
    return digest(KEY_VERSION, tenant, provider, endpoint, model, spelled(params), text)


def celery_run(celery_id: str, task_name: str) -> str:
    """The run of a Celery message: its deliveries, retries and republications belong to one run."""
    return digest("celery", celery_id, task_name)[:32]
