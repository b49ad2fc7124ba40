"""What tests of OCR need: the extra and language files. Without them they skip, or fail under CI=true."""

import os

import pytest

from holdfast.kinds import recognition


def require_ocr(languages="eng+osd"):
    """Return if pages can be recognised here."""
    reason = recognition.unavailable("auto", languages)
    if reason is not None:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"{reason}; make services-up installs it")
        pytest.skip(f"NO OCR: {reason}")
