"""Static files: styles, modules, the icon. Their URL contains a digest of all of them.

So browsers may cache them for ever, and load new ones right after an update; modules import each other by
relative paths, which stay within the same digest.
"""

import functools
import hashlib
from importlib import resources

from fastapi.responses import Response

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOR_EVER = "public, max-age=31536000, immutable"


@functools.cache
def files() -> dict[str, bytes]:
    """The content of each file by its name."""
    folder = resources.files("holdfast.web") / "static"
    entries = (each for each in folder.iterdir() if each.name.rpartition(".")[2] in TYPES)
    return {each.name: each.read_bytes() for each in sorted(entries, key=lambda one: one.name)}


@functools.cache
def digest() -> str:
    """What stands for all of them as they are now."""
    whole = hashlib.sha256()
    for name, content in files().items():
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:12]


def address(name: str) -> str:
    """Where a browser finds the file."""
    if name not in files():
        raise LookupError(f"there is no static file {name}")
    return f"/static/{digest()}/{name}"


def answer(version: str, name: str) -> Response:
    """The file; under the digest of another release it is there too, but is not kept."""
    content = files().get(name)
    if content is None:
        return Response("there is no such file", 404, media_type="text/plain")
    caching = FOR_EVER if version == digest() else "no-store"
    return Response(content, media_type=TYPES[name.rpartition(".")[2]], headers={"Cache-Control": caching})
