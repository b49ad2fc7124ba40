"""Measures how long a large knowledge graph takes to read: by the API, in the web UI, and in a browser.

    python -m bench.kinds.graph_size [--entities 20000] [--requests 40] [--only sqlite|postgresql] [--browser]
        [--json FILE]

Each figure is in milliseconds, at the 95th percentile, and stands beside that of a page of the same
installation that has nothing to do with graphs, measured at the same time: a busy machine slows both.
`cpu` is the processor time of the server for one of them. PostgreSQL must be up (`make services-up`).
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from bench import places
from bench.kinds import large_graph
from bench.results import percentile
from bench.serving import serving
from holdfast.bootstrap import AppServices
from holdfast.service.requests import RequestContext
from scripts.services import packages

DOCUMENTS = 200
PLAIN = "plain page"
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def _paths(entities: int) -> dict[str, Callable[[int], str]]:
    """What is asked for, by the number of the request."""
    page = f"/collections/{large_graph.COLLECTION}/graph"
    api = f"/api/v1{page}"
    hub = large_graph.key(large_graph.name_of(0))

    def entity(number: int) -> str:
        return large_graph.key(large_graph.name_of(number * 397 % entities))

    def community(number: int) -> str:
        return large_graph.key(f"report 1.{number * 31 % (entities // large_graph.GROUP)}")

    return {
        PLAIN: lambda _: f"/collections/{large_graph.COLLECTION}/actions",
        "graph tab": lambda _: page,
        "graph tab, by name": lambda number: f"{page}?q={large_graph.name_of(number * 397)[:4]}",
        "graph tab, an entity": lambda number: f"{page}?entity={entity(number)}",
        "graph tab, a community": lambda number: f"{page}?community={community(number)}",
        "first page": lambda _: f"{api}?limit=100",
        "by name": lambda number: f"{api}?q={large_graph.name_of(number * 397)[:4]}",
        "by kind": lambda number: f"{api}?kind={large_graph.KINDS[number % 5]}",
        "an entity": lambda number: f"{api}/entities/{entity(number)}",
        "its neighbours": lambda number: f"{api}/entities/{entity(number)}/neighbours",
        "neighbours of the largest": lambda _: f"{api}/entities/{hub}/neighbours?limit=100",
        "communities": lambda _: f"{api}/communities?limit=100",
        "a community": lambda number: f"{api}/communities/{community(number)}",
    }


def _get(port: int, path: str) -> tuple[float, float, bytes]:
    """Milliseconds, those of the processor, and the answer."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        began, used = time.perf_counter(), time.process_time()
        connection.request("GET", path, headers={"Accept": "text/html, application/json"})
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise SystemExit(f"{path} was answered with {response.status}")
        return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used), body


def _all_pages(port: int) -> dict[str, float]:
    """Every entity of the graph, page by page: the slowest twentieth, whichever page it is."""
    path = f"/api/v1/collections/{large_graph.COLLECTION}/graph?limit=100"
    times, seen, cursor = [], 0, ""
    while cursor is not None:
        took, _, body = _get(port, path + (f"&cursor={cursor}" if cursor else ""))
        answer = json.loads(body)
        cursor, seen = answer["next"], seen + len(answer["entities"])
        times.append(took)
    return {"pages": len(times), "entities": seen, "p95": percentile(times, 0.95), "total": sum(times)}


def measure(port: int, entities: int, requests: int) -> dict[str, Any]:
    """Milliseconds of each path at the 95th percentile, and of the processor in the middle."""
    first, used, _ = _get(port, f"/api/v1/collections/{large_graph.COLLECTION}/graph")
    figures: dict[str, Any] = {"first of all": {"p95": first, "cpu": used}}
    paths = _paths(entities)
    for name in paths:
        _get(port, paths[name](requests))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
    for number in range(requests):
        for name, path in paths.items():
            took, used, _ = _get(port, path(number))
            times[name].append((took, used))
    for name, some in times.items():
        took, used = zip(*some, strict=True)
        figures[name] = {"p50": percentile(took, 0.5), "p95": percentile(took, 0.95)}
        figures[name] |= {"cpu": statistics.median(used)}
    figures["every page"] = _all_pages(port)
    return figures


def after_a_deletion(services: AppServices, port: int, requests: int) -> dict[str, float]:
    """The first page while what is of a deleted document is withheld."""
    document = next(iter(services.documents.walk(large_graph.TENANT, large_graph.COLLECTION)))
    services.documents.delete(RequestContext(large_graph.TENANT, "bench"), document.id)
    path = f"/api/v1/collections/{large_graph.COLLECTION}/graph"
    took, used, _ = zip(*(_get(port, path) for _ in range(requests)), strict=True)
    return {"p95": percentile(took, 0.95), "cpu": statistics.median(used)}


def _visited(page: Page, url: str) -> dict[str, float]:
    """Milliseconds until a page is drawn, and those of the browser's processor."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    began = time.perf_counter()
    page.goto(url, wait_until="load")
    page.evaluate(DRAWN)
    took = 1000 * (time.perf_counter() - began)
    used = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return {"drawn": took, "cpu": 1000 * used["ProcessTime"]}


def in_a_browser(port: int, rounds: int) -> dict[str, Mapping[str, float]]:
    """A plain page and the graph with its 300 circles, each in a window of its own, turn by turn."""
    pages = {PLAIN: "/actions", "graph": "/graph"}
    visits: dict[str, list[dict[str, float]]] = {name: [] for name in pages}
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=packages.found("chromium"), args=list(FLAGS))
        for number in range(rounds + 1):
            for name, path in pages.items():
                context = browser.new_context(viewport={"width": 1280, "height": 860})
                url = f"http://127.0.0.1:{port}/collections/{large_graph.COLLECTION}{path}"
                visit = _visited(context.new_page(), url)
                context.close()
                if number:  # the first one starts the browser's own processes
                    visits[name].append(visit)
        browser.close()
    return {
        name: {
            "p50": statistics.median(each["drawn"] for each in some),
            "p95": percentile([each["drawn"] for each in some], 0.95),
            "cpu": statistics.median(each["cpu"] for each in some),
        }
        for name, some in visits.items()
    }


def main() -> None:
    """Measure, print, and write the figures if a file is named."""
    parser = argparse.ArgumentParser(prog="bench.kinds.graph_size")
    parser.add_argument("--entities", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--only", choices=[places.SQLITE, places.POSTGRESQL])
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in [options.only] if options.only else [places.SQLITE, places.POSTGRESQL]:
        with (
            places.fresh(name) as url,
            tempfile.TemporaryDirectory() as folder,
            serving(url, Path(folder)) as (services, port),
        ):
            large_graph.build(services, options.entities, DOCUMENTS)
            figures[name] = measure(port, options.entities, options.requests)
            if options.browser:
                figures[name]["browser"] = in_a_browser(port, max(3, options.requests // 4))
            figures[name]["after a deletion"] = after_a_deletion(services, port, options.requests)
            figures[name]["load"] = os.getloadavg()[0]
        Console().print(name, figures[name])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
