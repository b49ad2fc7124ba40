"""The providers of a run: which one does not answer, and which one reads its document."""

from collections.abc import Sequence

from holdfast.core.states import CallState
from holdfast.store.money import provider_troubles
from holdfast.store.money.billing import OpenOrder
from holdfast.store.money.provider_troubles import Trouble
from holdfast.store.views.reads import Story


def trouble(story: Story, troubles: Sequence[Trouble]) -> Trouble | None:
    """What a provider of the latest run does not answer."""
    chosen = story.runs[0].options.get("provider") if story.runs else None
    return next((each for each in troubles if each.provider in {chosen, *story.providers}), None)


def reading(orders: Sequence[OpenOrder]) -> str | None:
    """The service that reads the document for its parser, while its answer is waited for."""
    sent = (each for each in orders if each.state in {CallState.INTENT, CallState.SENT, CallState.IN_DOUBT})
    return next((each.provider for each in sent if each.endpoint not in provider_troubles.PARTS), None)
