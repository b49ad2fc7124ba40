"""The picture of a knowledge graph is drawn in few steps and few elements, whatever is stored."""

import math
import time

import pytest

from bench.kinds import large_graph
from holdfast.bootstrap import AppServices
from holdfast.service.graph_catalogue import EntityName
from holdfast.service.graphs import GraphPicture
from holdfast.store.derived.graphs import GraphEdge
from holdfast.web import graph_pictures, graph_spacing
from tests.api.install import ApiInstall

CIRCLES = 300
AREA = (0.0, 0.0, 1000.0, 700.0)
# What a browser does for a picture: elements with their attributes, laid out in the document.
WORK = """() => {
  const names = "http://www.w3.org/2000/svg";
  const drawing = document.body.appendChild(document.createElementNS(names, "svg"));
  for (let number = 0; number < 6000; number += 1) {
    const text = drawing.appendChild(document.createElementNS(names, "text"));
    text.setAttribute("x", number % 1000);
    text.setAttribute("y", number % 700);
    text.textContent = `Number ${number}`;
  }
  drawing.getBoundingClientRect();
  const height = drawing.getBBox().height;
  drawing.remove();
  return height;
}"""


def entity(number, x, y):
    name, mentions = f"{number:04}", 1 + number % 9
    return EntityName(name, f"Entity {number}", "person", (), mentions, None, x, y, True, "", ())


def picture(places, lines=1200):
    """Entities at these positions, and relations between some of them."""
    entities = tuple(entity(number, x, y) for number, (x, y) in enumerate(places))
    ends = [(number % len(places), number * 7 % len(places)) for number in range(lines)]
    edges = tuple(
        GraphEdge(f"e{number}", f"{one:04}", f"{other:04}", 1.0 + number % 5, "met")
        for number, (one, other) in enumerate(ends)
    )
    return GraphPicture(1, entities, edges)


def sunflower(many):
    golden = math.pi * (3 - math.sqrt(5))
    steps = ((math.sqrt(number / many) / 2, number * golden) for number in range(many))
    return [(0.5 + far * math.cos(angle), 0.5 + far * math.sin(angle)) for far, angle in steps]


PLACES = {
    "spread": sunflower(CIRCLES),
    "on one spot": [(0.5, 0.5)] * CIRCLES,
    "on a line": [(0.5, number / CIRCLES) for number in range(CIRCLES)],
    "one far off": [*((0.5 + number / 1e5, 0.5) for number in range(CIRCLES - 1)), (0.0, 1.0)],
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_circles_are_spread_in_few_steps(places, monkeypatch):
    """Inside the picture and mostly apart, from any positions, and the number of steps is bounded."""
    steps = []
    apart = graph_spacing._apart
    monkeypatch.setattr(graph_spacing, "_apart", lambda *some: steps.append(1) or apart(*some))
    at = graph_spacing.spread([x for x, _ in places], [y for _, y in places], AREA)
    assert len(steps) <= graph_spacing.STEPS + graph_spacing.STEPS / graph_spacing.LOOK_AROUND
    assert all(0 <= x <= 1000 and 0 <= y <= 700 for x, y in at)
    nearest = [
        min(math.dist(one, other) for number, other in enumerate(at) if number != own)
        for own, one in enumerate(at)
    ]
    assert sum(each > 10 for each in nearest) > CIRCLES / 2
    assert at == graph_spacing.spread([x for x, _ in places], [y for _, y in places], AREA)


def test_what_is_chosen_moves_no_circle():
    """A click marks an entity and its relations, and everything stays where it was."""
    drawn = graph_pictures.draw(picture(PLACES["spread"]), None, frozenset())
    chosen = graph_pictures.draw(picture(PLACES["spread"]), "0007", frozenset())
    at = {each.entity.key: (each.x, each.y) for each in drawn.entities}
    assert {each.entity.key: (each.x, each.y) for each in chosen.entities} == at
    assert {each.is_near for each in chosen.lines} == {True, False}
    assert not any(each.is_near for each in drawn.lines)


def test_the_server_draws_three_hundred_circles_in_no_time():
    """Its processor time is a small multiple of a plain loop over what is drawn, on any machine."""

    def used(work, times):
        began = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - began) / times

    graph = picture(PLACES["spread"])
    loop = lambda: [math.hypot(number, number + 1) for number in range(100_000)]
    draw = lambda: graph_pictures.draw.__wrapped__(graph, None, frozenset())
    draw()
    ratios = [used(draw, 3) / used(loop, 3) for _ in range(3)]
    assert min(ratios) < 4, ratios
    drawing = draw()
    assert len(drawing.entities) == CIRCLES
    assert len(drawing.lines) <= 2 * graph_pictures.WIDTHS


def test_a_browser_draws_three_hundred_circles_with_few_elements(sqlite_url, tmp_path, look):
    """One request, four elements for a circle, and the processor time of some thousand elements."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    try:
        large_graph.build(AppServices(install.runtime), CIRCLES, 3)
        reader = look(f"http://127.0.0.1:{install.port}")
        session = reader.context.new_cdp_session(reader.page)
        session.send("Performance.enable")

        def used():
            metrics = session.send("Performance.getMetrics")["metrics"]
            return next(each["value"] for each in metrics if each["name"] == "ProcessTime")

        reader.open("/collections/large/graph")
        begin = used()
        page = reader.open("/collections/large/graph")
        drawn = used() - begin
        assert page.locator("#graph circle").count() == CIRCLES
        assert page.locator("#graph *").count() <= 4 * CIRCLES + 2 * graph_pictures.WIDTHS + 5
        begin = used()
        page.evaluate(WORK)
        assert drawn < 4 * (used() - begin)
        before = reader.asked("/graph")
        page.locator("#graph a circle").nth(7).dispatch_event("click")
        page.wait_for_selector("#graph .chosen")
        assert reader.asked("/graph") == before + 1
    finally:
        install.close()
