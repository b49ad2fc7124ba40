"""Bundles in tests: made by the API, taken apart and put together again wrongly."""

import io
import json
import zipfile
from typing import Any

from tests.api.install import ApiResponse, Client


def exported(client: Client, where: str = "shelf") -> bytes:
    """The bundle of a collection."""
    said = client.post(f"collections/{where}/export")
    assert said.status == 202, said.raw
    client.install.work()
    got = client.get(f"jobs/{said.json['job_id']}/file")
    assert got.status == 200, client.get(f"jobs/{said.json['job_id']}").raw
    return got.raw


def brought(client: Client, bundle: bytes, **fields: Any) -> Any:
    """The import of a bundle, carried out: the job with its totals."""
    said = client.upload("imports", bundle, "shelf.zip", **fields)
    assert said.status == 202, said.raw
    client.install.work()
    return told(client, said)


def told(client: Client, said: ApiResponse) -> Any:
    body = client.get(f"jobs/{said.json['job_id']}").json
    return {**body["job"], "totals": body["totals"]}


def pieces(bundle: bytes) -> dict[str, bytes]:
    """The members of a bundle."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    """A bundle of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def changed(bundle: bytes, member: str, change: Any) -> bytes:
    """The bundle with one JSON member, or each line of one, changed."""
    result = pieces(bundle)
    lines = result[member].splitlines()
    result[member] = b"\n".join(json.dumps(change(json.loads(line))).encode() for line in lines) + b"\n"
    return packed(result)


def hits(client: Client, where: str, words: str) -> list[str]:
    """The texts that are found."""
    return [hit["text"] for hit in client.get(f"search?collection={where}&q={words}").json["hits"]]


def listed(client: Client, where: str) -> list[Any]:
    return client.get(f"collections/{where}/documents").json["documents"]
