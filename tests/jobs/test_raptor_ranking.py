"""Summaries among the hits do not make the ranking of the judged collection worse."""

from urllib.parse import quote

import pytest

from tests.api.install import ApiInstall
from tests.jobs.install import done
from tests.search import judging

pytestmark = pytest.mark.slow


def plain(text):
    return " ".join(text.split())


def test_the_judged_collection_is_ranked_no_worse_with_summaries(sqlite_url, tmp_path):
    """nDCG@10 over forty queries, with the models that ship; and summaries are among the hits."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    try:
        install.client.post("collections", {"id": "shelf", "options": {"delimiter": "¶"}})
        names = {plain(passage): name for name, passage in judging.passages().items()}
        for topic, passages in judging.by_topic().items():
            install.client.text(" ¶ ".join(passages.values()), title=topic)
        install.work()
        assert done(install, "raptor")["state"] == "success"
        summaries = []

        def ranking(query, more):
            hits = install.client.get(f"search?collection=shelf&k=10&q={quote(query)}{more}").json["hits"]
            summaries.extend(one for one in hits if one["type"] == "summary")
            return [names.get(plain(one["text"]), "") for one in hits]

        alone = judging.mean_ndcg(lambda query: ranking(query, "&source=chunks"))
        both = judging.mean_ndcg(lambda query: ranking(query, ""))
        assert alone > 0.75
        assert both >= alone, (alone, both)
        assert summaries
    finally:
        install.close()
