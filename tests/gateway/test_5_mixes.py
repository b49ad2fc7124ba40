"""Requests for embeddings of which some texts are known and others not: the right vectors, in order."""

import base64
import random

import pytest

from holdfast.testing import meter_answers
from tests.gateway.install import EMBEDDER

pytestmark = pytest.mark.g5
DIMENSIONS = 32


def mixes(install, meter, number, seed):
    """So many random requests over a vocabulary that is known little by little."""
    chance = random.Random(seed)
    texts = [f"text {each}" for each in range(max(60, number // 4))]
    for _ in range(number):
        drawn = [chance.choice(texts) for _ in range(chance.randint(1, 12))]
        spelling = chance.choice(["base64", "float"])
        body = {"model": EMBEDDER, "input": drawn, "encoding_format": spelling}
        answer = install.post("embeddings", body).json
        assert [each["index"] for each in answer["data"]] == list(range(len(drawn)))
        for text, each in zip(drawn, answer["data"], strict=True):
            expected = meter_answers.vector(EMBEDDER, text, DIMENSIONS)
            value = each["embedding"]
            assert (base64.b64decode(value) if spelling == "base64" else packed(value)) == expected
    assert meter.totals().excess == 0


def packed(vector):
    """The vector as float32."""
    return meter_answers.struct.pack(f"<{len(vector)}f", *vector)


def test_partial_hits_return_the_right_vectors(quick, meter):
    """150 random mixes."""
    mixes(quick, meter, 150, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_thousand_mixes(install, meter):
    """On each database."""
    mixes(install, meter, 10_000, seed=2)
