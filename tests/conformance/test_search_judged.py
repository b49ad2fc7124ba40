"""How good the ranking is, by people's judgement, with the embedding model that ships."""

from pathlib import Path

import pytest
import wordllama

from holdfast.search.searcher import Searcher
from holdfast.service.search import LOCAL_FLOOR
from tests.search import judging
from tests.search.sample_documents import Shelf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def model():
    # Its own default looks for the tokenizer where it is not, and would then ask the network.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def test_hybrid_beats_both_its_parts_on_the_judged_collection(world, model):
    """nDCG@10 over forty queries; and every part is worth having."""
    shelf = Shelf(world.db)
    embed = lambda text: model.embed([text])[0]
    names = {}
    for topic, passages in judging.by_topic().items():
        shelf.publish(topic, *passages.values(), embed=embed)
        names |= {(topic, position): name for position, name in enumerate(passages)}
    searcher = Searcher(world.db, embed)

    def quality(mode):
        return judging.mean_ndcg(
            lambda query: [
                names[hit.document_id, hit.position]
                for hit in searcher.search("acme", "c", query, mode=mode).hits
            ]
        )

    floored = judging.mean_ndcg(
        lambda query: [
            names[hit.document_id, hit.position]
            for hit in searcher.search("acme", "c", query, floor=LOCAL_FLOOR).hits
        ]
    )
    keyword, vector, hybrid = quality("keyword"), quality("vector"), quality("hybrid")
    assert hybrid > max(keyword, vector), (keyword, vector, hybrid)
    assert keyword > 0.63
    assert vector > 0.75
    assert hybrid > 0.80
    assert floored >= hybrid, "what is cut as weak answers nothing"
