"""Metadata, labels and properties of documents, and their values for filters, always written together.

A property of the file has a row only while no metadata has its name: metadata takes its place.

A writer of values has written the document's row in the same transaction, so that two writers of one
document follow one another. A document changes its collection together with its values.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, update

from holdfast.core import document_metadata
from holdfast.core.document_metadata import LABELS, FieldValue
from holdfast.core.states import Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import document_values, documents
from holdfast.store.library import chunk_edits

# Values of metadata and labels, which are fewer, have lower positions than those of properties.
FILE_POSITION = 1000
CLEAR = delete(document_values).where(
    document_values.c.tenant == bindparam("b_tenant"), document_values.c.document == bindparam("b_document")
)
CLEAR_FILE = CLEAR.where(document_values.c.position >= FILE_POSITION)
NEW = insert(document_values)
MOVE = (
    update(document_values)
    .where(
        document_values.c.tenant == bindparam("b_tenant"),
        document_values.c.document == bindparam("b_document"),
    )
    .values(collection=bindparam("b_collection"))
)
SET = (
    update(documents)
    .where(
        documents.c.tenant == bindparam("b_tenant"),
        documents.c.id == bindparam("b_document"),
        ~documents.c.deleted,
    )
    .values(metadata=bindparam("b_metadata"), labels=bindparam("b_labels"), updated_at=now())
    .returning(documents.c.collection)
)


@dataclass(frozen=True, slots=True)
class Description:
    """What a user says about a document: metadata and labels."""

    metadata: Mapping[str, Any]
    labels: Sequence[str] = ()


Values = Iterable[tuple[str, FieldValue]]


def put(tx: Tx, name: tuple[str, str], collection: str, description: Description) -> None:
    """The values of a new document (tenant, id) are there."""
    rows = dict.fromkeys(document_metadata.values(description.metadata))
    labels = [(LABELS, document_metadata.field_value(each)) for each in description.labels]
    _insert(tx, name, collection, [*rows, *labels], 0)


def put_file(
    tx: Tx,
    name: tuple[str, str],
    collection: str,
    properties: Mapping[str, Any],
    metadata: Mapping[str, Any],
    *,
    is_first: bool = False,
) -> None:
    """The values of the file's properties are these, without those whose name metadata has."""
    if not is_first:
        tx.execute(CLEAR_FILE, {"b_tenant": name[0], "b_document": name[1]})
    values = dict.fromkeys(document_metadata.file_values(properties, metadata))
    _insert(tx, name, collection, values, FILE_POSITION)


def _insert(tx: Tx, name: tuple[str, str], collection: str, fields: Values, start: int) -> None:
    tenant, document = name
    common: dict[str, Any] = {"tenant": tenant, "document": document, "collection": collection}
    values = [
        common
        | {
            "position": position,
            "path": path,
            "kind": value.kind.value,
            "key": value.key,
            "whole": value.whole,
        }
        for position, (path, value) in enumerate(fields, start=start)
    ]
    if values:
        tx.execute(NEW, values)


def replace(
    tx: Tx,
    name: tuple[str, str],
    old: Description,
    new: Description,
    *,
    properties: Mapping[str, Any],
    head_id: int | None,
    actor: str,
) -> bool:
    """The document is described like this; False if it is gone. A change is in the journal.

    `properties` are those of its file, read from the locked row.
    """
    if _written(old) == _written(new):
        return True
    where = {"b_tenant": name[0], "b_document": name[1]}
    row = tx.one(
        SET, where | {"b_metadata": dict(new.metadata) or None, "b_labels": list(new.labels) or None}
    )
    if row is None:
        return False
    tx.execute(CLEAR, where)
    put(tx, name, row.collection, new)
    if properties:
        put_file(tx, name, row.collection, properties, new.metadata, is_first=True)
    names = sorted(
        each
        for each in {**old.metadata, **new.metadata}
        if _json(old.metadata.get(each, ...)) != _json(new.metadata.get(each, ...))
    )
    data: dict[str, Any] = {"document": name[1], "metadata": names}
    if list(old.labels) != list(new.labels):
        data["labels"] = list(new.labels)
    entry = journal.entry(Verb.DESCRIBE, "changed", tenant=name[0], head_id=head_id, actor=actor, data=data)
    journal.write(tx, entry)
    return True


def _written(description: Description) -> tuple[str, list[str]]:
    """To compare by: for Python itself 1, 1.0 and true are the same."""
    return _json(description.metadata), list(description.labels)


def _json(value: Any) -> str:
    return "" if value is ... else json.dumps(value, sort_keys=True)


def move(tx: Tx, name: tuple[str, str], collection: str) -> None:
    """The values are those of a document of this collection."""
    tx.execute(MOVE, {"b_tenant": name[0], "b_document": name[1], "b_collection": collection})


def forget(db: Database, tenant: str, document_id: str) -> None:
    """A deleted document has no values, and no edits."""
    values = {"b_tenant": tenant, "b_document": document_id}

    def body(tx: Tx) -> None:
        tx.execute(CLEAR, values)
        chunk_edits.clear(tx, tenant, document_id)

    db.write("forget_values", body)
