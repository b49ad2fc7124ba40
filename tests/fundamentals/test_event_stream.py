"""A streamed completion, read as it arrives: the same pieces whatever the network cuts it into."""

import json

import pytest

from holdfast.providers import event_stream
from holdfast.providers.event_stream import ChatStream, StreamError


def chunk(content=None, finish=None, **more):
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice], **more}, ensure_ascii=False)}\n\n".encode()


WHOLE = b": hello\r\n\r\n" + chunk("Grüße ") + chunk("aus Köln") + chunk(finish="stop") + b"data: [DONE]\n\n"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_do_not_depend_on_the_network(size):
    """Cut anywhere, also inside a letter, it is the same text in the same pieces."""
    stream = ChatStream()
    heard = [piece for at in range(0, len(WHOLE), size) for piece in stream.feed(WHOLE[at : at + size])]
    assert heard == stream.pieces == ["Grüße ", "aus Köln"]
    assert (stream.finish_reason, stream.is_complete) == ("stop", True)
    assert event_stream.cut(stream.text, [len(piece) for piece in heard]) == heard


def test_a_stream_without_an_end_is_not_complete():
    """It broke off: its outcome is unknown."""
    stream = ChatStream()
    stream.feed(chunk("Half of"))
    assert not stream.is_complete


@pytest.mark.parametrize(
    "bad", [b"data: {\n\n", b"data: []\n\n", b'data: {"error": {"message": "no"}}\n\n', b"x" * (2 << 20)]
)
def test_what_is_no_completion_is_an_error(bad):
    """Not JSON, not an object, an error in the middle, a line without an end."""
    with pytest.raises(StreamError):
        ChatStream().feed(chunk("a") + bad)


def test_half_a_character_can_be_stored():
    """A lone surrogate, which JSON can carry and no database stores, is replaced."""
    stream = ChatStream()
    stream.feed(b'data: {"choices": [{"delta": {"content": "a\\ud800"}}], "usage": {"prompt_tokens": 3}}\n\n')
    assert (stream.text, stream.usage) == ("a\ufffd", {"prompt_tokens": 3})
