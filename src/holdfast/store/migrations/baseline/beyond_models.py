"""What models cannot express: full-text indexes, the order of the journal, triggers that count documents."""

from alembic import op

# One call per statement: deleting a collection of 100,000 documents changes the counter row once.
COUNT_POSTGRESQL = """
CREATE FUNCTION holdfast_count_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO holdfast_quotas AS q (tenant, documents, bytes)
        SELECT tenant, count(*), coalesce(sum(size), 0) FROM new_rows WHERE NOT deleted
        GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE
        SET documents = q.documents + excluded.documents, bytes = q.bytes + excluded.bytes;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE holdfast_quotas AS q SET documents = q.documents - gone.documents, bytes = q.bytes - gone.bytes
        FROM (SELECT tenant, count(*) AS documents, coalesce(sum(size), 0) AS bytes FROM old_rows
              WHERE NOT deleted GROUP BY tenant) AS gone
        WHERE q.tenant = gone.tenant;
    ELSE
        INSERT INTO holdfast_quotas AS q (tenant, documents, bytes)
        SELECT tenant, sum(number), sum(size) FROM (
            SELECT tenant, 1 AS number, size FROM new_rows WHERE NOT deleted
            UNION ALL SELECT tenant, -1, -size FROM old_rows WHERE NOT deleted
        ) AS changed
        GROUP BY tenant HAVING sum(number) <> 0 OR sum(size) <> 0 ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE
        SET documents = q.documents + excluded.documents, bytes = q.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$
"""
TRIGGERS_POSTGRESQL = {
    "holdfast_quota_counts_inserts": "AFTER INSERT ON holdfast_documents REFERENCING NEW TABLE AS new_rows",
    "holdfast_quota_counts_updates": (
        "AFTER UPDATE ON holdfast_documents REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
    ),
    "holdfast_quota_counts_deletes": "AFTER DELETE ON holdfast_documents REFERENCING OLD TABLE AS old_rows",
}
TRIGGERS_SQLITE = {
    "holdfast_quota_counts_inserts": """AFTER INSERT ON holdfast_documents WHEN NOT NEW.deleted BEGIN
        INSERT INTO holdfast_quotas (tenant, documents, bytes) VALUES (NEW.tenant, 1, NEW.size)
        ON CONFLICT (tenant) DO UPDATE SET documents = documents + 1, bytes = bytes + excluded.bytes;
    END""",
    "holdfast_quota_counts_updates": """AFTER UPDATE OF size, deleted ON holdfast_documents
    WHEN OLD.size <> NEW.size OR OLD.deleted <> NEW.deleted BEGIN
        UPDATE holdfast_quotas SET
            documents = documents + (NOT NEW.deleted) - (NOT OLD.deleted),
            bytes = bytes + (NOT NEW.deleted) * NEW.size - (NOT OLD.deleted) * OLD.size
        WHERE tenant = NEW.tenant;
    END""",
    "holdfast_quota_counts_deletes": """AFTER DELETE ON holdfast_documents WHEN NOT OLD.deleted BEGIN
        UPDATE holdfast_quotas SET documents = documents - 1, bytes = bytes - OLD.size
        WHERE tenant = OLD.tenant;
    END""",
}


def create() -> None:
    """They exist, written for the database's dialect."""
    if op.get_bind().dialect.name == "postgresql":
        _on_postgresql()
    else:
        _on_sqlite()


def _on_postgresql() -> None:
    op.execute("ALTER TABLE holdfast_journal ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint")
    op.execute(
        "CREATE INDEX holdfast_chunks_words ON holdfast_chunks "
        "USING gin (array_to_tsvector(string_to_array(words, ' '))) WHERE words IS NOT NULL"
    )
    op.execute(COUNT_POSTGRESQL)
    for name, what in TRIGGERS_POSTGRESQL.items():
        op.execute(
            f"CREATE TRIGGER {name} {what} FOR EACH STATEMENT EXECUTE FUNCTION holdfast_count_documents()"
        )


def _on_sqlite() -> None:
    """A full-text index without its own copy of the text; triggers keep it in step.

    Its tokenizer is `ascii`: there every character beyond ASCII belongs to a word, so that a term is one
    token. `unicode61` only knows the letters of Unicode 6.1, and would cut a term at any newer one and at the
    vowel signs of Indic scripts.
    """
    op.execute(
        "CREATE VIRTUAL TABLE holdfast_chunk_words USING fts5(words, content='holdfast_chunks', "
        "content_rowid='id', tokenize='ascii', columnsize=0, detail='none')"
    )
    gone = "INSERT INTO holdfast_chunk_words(holdfast_chunk_words, rowid, words)"
    op.execute(
        "CREATE TRIGGER holdfast_chunk_words_come AFTER INSERT ON holdfast_chunks WHEN new.words IS NOT NULL "
        "BEGIN INSERT INTO holdfast_chunk_words(rowid, words) VALUES (new.id, new.words); END"
    )
    op.execute(
        "CREATE TRIGGER holdfast_chunk_words_gone AFTER DELETE ON holdfast_chunks WHEN old.words IS NOT NULL "
        f"BEGIN {gone} VALUES ('delete', old.id, old.words); END"
    )
    for name, what in TRIGGERS_SQLITE.items():
        op.execute(f"CREATE TRIGGER {name} {what}")
