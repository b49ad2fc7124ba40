"""Requests that are taken, by method and path below the prefix: the ground from which tests go astray."""

from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
CALLBACK = {"url": "https://example.org/hook", "secret": "as long as a secret must be"}
MESSAGE = {"role": "user", "content": "Who knows of quicksilver?"}
FLOW = "flow: mine\nversion: 1\nsteps: [split: {size: 100}]"
# What OpenAI's clients send may hold fields that we do not know, and its URL is not below the prefix.
OPENAI = frozenset({"POST /v1/chat/completions"})
TAKEN: dict[str, list[Any]] = {
    "POST /collections": [{"id": "mine", "title": "Mine", "options": {"chunk_size": 100}}],
    "PATCH /collections/{collection_id}": [{"options": {"chunk_size": 100}}],
    "POST /collections/{collection_id}/documents": [
        {"text": "Mine now.", "title": "Mine", "options": {"chunk_size": 100}}
    ],
    "PATCH /documents/{document_id}": [{"title": "Mine", "options": {"chunk_size": 100}}],
    "PATCH /documents/{document_id}/chunks/{chunk}": [{"text": "Mine now.", "enabled": True}],
    "PUT /documents/{document_id}/content": [{"text": "Mine now."}],
    "PUT /collections/{collection_id}/documents/{document_id}": [{"mode": "copy"}],
    "POST /documents/{document_id}/dry-run": [{"source": FLOW}],
    "POST /documents/{document_id}/index": [{"mode": "replace"}],
    "POST /collections/{collection_id}/jobs": [
        {"kind": "qa", "params": {"notes": "Short ones.", "limit": 3}, "callback": CALLBACK},
        {"kind": "extract", "params": {"schema": SCHEMA, "instruction": "Names."}},
    ],
    "POST /documents/{document_id}/jobs": [{"kind": "qa", "mode": "force"}],
    "POST /collections/{collection_id}/actions": [
        {"sort": "prompt", "params": {"instruction": "Mine now."}, "name": "mine"},
        {"sort": "extract", "params": {"schema": SCHEMA}},
        {"sort": "webhook", "params": {"url": "https://example.org/hook"}},
    ],
    "POST /collections/{collection_id}/sources": [
        {"type": "urls", "options": {"urls": ["http://127.0.0.1:9/a.txt"]}, "name": "Mine"}
    ],
    "PATCH /collections/{collection_id}/sources/{source_id}": [{"name": "Mine", "refresh_every": 3600}],
    "POST /flows": [{"source": FLOW}],
    "POST /flows/check": [{"source": FLOW}],
    "POST /flows/diff": [{"source": FLOW, "collection": "shelf"}],
    "POST /flows/estimate": [{"source": FLOW, "collection": "shelf"}],
    "POST /estimate": [{"collection": "shelf", "options": {"chunk_size": 100}}, {"text": "Words."}],
    "PUT /budgets": [{"scope": "collection:shelf", "hard": 5, "soft": 1}, {"scope": "tenant", "hard": 5}],
    "POST /orders/{order_id}/resolve": [{"charged": True}],
    "POST /search": [{"collections": ["shelf"], "q": "ready", "group": True}],
    "POST /collections/{collection_id}/ask": [{"question": "Who knows of quicksilver?", "k": 3}],
    "POST /ask": [{"collections": ["shelf"], "question": "Who knows of quicksilver?"}],
    "POST /v1/chat/completions": [{"model": "collection:shelf", "messages": [MESSAGE], "stream": False}],
    "GET /search": [{"collection": "shelf", "q": "ready"}],
}
