"""What the stand-in finds in the sample collection, against what a reader finds there."""

import pytest

from bench.kinds import graph_quality, labelled_harbour
from tests.api.install import ApiInstall


@pytest.fixture
def plain(sqlite_url, tmp_path):
    """An installation as it comes: no language model is set up."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    yield install
    install.close()


def test_the_stand_in_finds_most_of_what_is_named(plain):
    """Four entities in five, most of their relations, and most answers within two steps; for nothing."""
    assert (len(labelled_harbour.ENTITIES), len(labelled_harbour.QUESTIONS)) == (40, 20)
    nodes = graph_quality.built(plain.runtime)
    figures = graph_quality.measured(nodes)
    assert figures["entity_recall"] >= 0.8, figures
    assert figures["relation_recall"] >= 0.6, figures
    assert figures["two_step_recall"] >= 0.85, figures
    assert figures["two_step_share"] <= 0.35, figures
    assert all(node.data["stand_in"] for node in nodes)
    assert {node.data["relation"] for node in nodes if node.type == "relation"} == {"appears with"}
