"""The application's keys are in no table and in no log."""

import logging
import sqlite3

import openai
import pytest

from tests.paid import sdks


def dump(url):
    """Every value of every row, and the bytes of the files."""
    path = url.removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    connection.close()
    return repr(rows).encode()


def test_no_key_is_stored_or_logged(sqlite_url, on_sqlite, meter, caplog):
    """Paid, refused, cut, streamed, embedded: the key went to the provider and nowhere else."""
    caplog.set_level(logging.DEBUG)
    secret = sdks.KEY
    echo = f'{{"error": {{"message": "Incorrect API key provided: {secret}", "code": "invalid_api_key"}}}}'
    for sdk in sdks.ALL:
        sdk.ask(on_sqlite.guard, meter, sdk.name)
    with sdks.openai_client(on_sqlite.guard, meter, max_retries=0) as client:
        client.embeddings.create(model="m", input=["a", "b"])
        meter.plan(
            script=[
                "charge_then_cut",
                {"do": "fail", "status": 401, "body": echo},
                {"do": "fail", "body": echo},
            ]
        )
        for error in (openai.APIConnectionError, openai.AuthenticationError, openai.InternalServerError):
            with pytest.raises(error):
                client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": error.__name__}]
                )
    stored = dump(sqlite_url)
    assert b"openai-responses-stream" in stored  # the dump has what was asked
    assert b"Incorrect API key provided: ***" in stored
    assert secret.encode() not in stored
    assert secret not in caplog.text
