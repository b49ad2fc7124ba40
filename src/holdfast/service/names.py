"""The ids, names and titles that people give to collections and documents."""

from holdfast.core.errors import BadRequestError
from holdfast.core.records import TENANT
from holdfast.core.text import is_plain

MOST_TITLE = 500
MOST_PASSWORD = 200
# Bytes: an index over names takes rows of 2,704 at most on PostgreSQL, tenant and collection included.
MOST_NAME = 2000


def check_id(collection_id: str) -> None:
    """Return if a collection may be called so; otherwise BadRequestError."""
    if not TENANT.fullmatch(collection_id):
        message = f"collection {collection_id!r} is not a valid name; use letters, digits, . - _, at most 64"
        raise BadRequestError(message, code="bad_collection")


def plain(text: str, what: str) -> str:
    """The text, if it can be kept; otherwise BadRequestError."""
    if not is_plain(text):
        raise BadRequestError(f"{what} {text!r:.80} has characters that cannot be stored", code=f"bad_{what}")
    return text


def title(text: str) -> str:
    """The title as it is kept: on one line, and not too long."""
    return plain(" ".join(text.split())[:MOST_TITLE] or "untitled", "title")


def password(text: str | None) -> str | None:
    """The password of a document, if it can be kept; BadRequestError otherwise, without repeating it."""
    if text is None or (0 < len(text) <= MOST_PASSWORD and is_plain(text)):
        return text
    message = f"the password must have 1 to {MOST_PASSWORD} characters, none of them a control character"
    raise BadRequestError(message, code="bad_password")
