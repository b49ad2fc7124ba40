"""The comparison: a plain loop, as many a task body is. It is no straw man: it retries, and it has no bug.

It reads a document, pays for its paragraphs in orders of three, tries an order again when it fails, and
writes the result when it is through. It knows nothing of other workers, nor of what was paid before; when it
dies, the broker delivers its message again and the next worker begins at the beginning.
"""

import argparse
import http.client
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.cli.demo import documents

TRIES = 3


def embed(address: str, texts: list[str]) -> object:
    """The answer to one order, after up to three tries."""
    url = urlsplit(address)
    body = json.dumps({"model": documents.MODEL, "input": texts})
    for left in reversed(range(TRIES)):
        connection = http.client.HTTPConnection(url.netloc, timeout=30)
        try:
            connection.request("POST", f"{url.path}/embeddings", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status == http.client.OK:
                return json.load(answer)["data"]
        except OSError:
            if not left:
                raise
        finally:
            connection.close()
        time.sleep(0.2)
    raise SystemExit("the provider refused the order")


def main(words: list[str] | None = None) -> None:
    """Index one document."""
    parser = argparse.ArgumentParser(prog="holdfast.cli.demo.plain_loop")
    for name in ("--folder", "--document", "--meter"):
        parser.add_argument(name, required=True)
    parser.add_argument("--wait-at", type=int, default=0)
    options = parser.parse_args(words)
    folder = Path(options.folder)
    texts = documents.read(folder, options.document)
    vectors: list[object] = []
    for number, start in enumerate(range(0, len(texts), documents.PER_ORDER), start=1):
        if number == options.wait_at:
            sys.stdout.write('{"event": "waiting"}\n')
            sys.stdout.flush()
            sys.stdin.readline()
        vectors.append(embed(options.meter, texts[start : start + documents.PER_ORDER]))
    (folder / f"{options.document}.json").write_text(json.dumps(vectors), encoding="utf-8")


if __name__ == "__main__":
    main()
