"""The pages that chunks were cut from, as far as the chunks show."""

from collections.abc import Sequence

from holdfast.documents.parse.records import Page, Role, TextBlock
from holdfast.engine.ready_documents import Passage


def joined(passages: Sequence[Passage]) -> list[Page]:
    """The pages that these chunks were cut from, as far as they show."""
    blocks: dict[int, list[TextBlock]] = {}
    for passage in passages:
        parts = [TextBlock(Role.PARAGRAPH, each) for each in passage.text.split("\n\n") if each.strip()]
        blocks.setdefault(passage.page or 1, []).extend(parts)
    return [Page(number, tuple(pieces)) for number, pieces in sorted(blocks.items())]
