"""The recipe of the manual for checking a signature works, and refuses what is forged."""

import hashlib
import hmac
import re
import time
from pathlib import Path

import pytest

from tests.webhooks.conftest import SECRET

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/receive-webhooks.md"


@pytest.fixture
def is_genuine():
    """The function as the page has it."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(source, names)
    return names["is_genuine"]


def test_what_was_sent_is_genuine(small, receiver, is_genuine):
    """And the same with another body, secret, time or no signature at all is not."""
    small.hook(receiver.url)
    small.ask()
    small.work()
    (came,) = receiver.came
    header = came.headers["holdfast-signature"]
    assert is_genuine(SECRET, header, came.body)
    assert not is_genuine(SECRET, header, came.body + b" ")
    assert not is_genuine("another secret, as long", header, came.body)
    old = header.replace(f"t={int(header[2:12])}", f"t={int(time.time()) - 900}")
    assert not is_genuine(SECRET, old, came.body)
    for forged in ("", "t=1", "t=x,v1=y", "v1=é", header.partition(",")[0]):
        assert not is_genuine(SECRET, forged, came.body)


def test_an_old_event_is_refused_whatever_its_signature(is_genuine):
    """A recording that is played again later."""
    at = int(time.time()) - 900
    signed = hmac.new(SECRET.encode(), f"{at}.{{}}".encode(), hashlib.sha256).hexdigest()
    assert not is_genuine(SECRET, f"t={at},v1={signed}", b"{}")
    assert is_genuine(SECRET, f"t={at},v1={signed}", b"{}", tolerance=1000.0)
