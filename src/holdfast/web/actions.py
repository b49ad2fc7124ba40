"""The actions of a collection: what runs on each document that becomes ready, and the results."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response

from holdfast.bootstrap import AppServices
from holdfast.core.states import Status
from holdfast.engine.job_specs import ActionSpec
from holdfast.engine.models import Model
from holdfast.service.records import Action, Delivery, FollowUp
from holdfast.web import forms, rendering
from holdfast.web.collections import PathCollection
from holdfast.web.page_access import Services

LATELY = 10
# Deliveries are looked through for those of each webhook.
DELIVERIES = 200
router = rendering.router()


@dataclass(frozen=True, slots=True)
class ActionCard:
    """An action with what it did lately: results with documents, or deliveries to a URL."""

    action: Action
    results: Sequence[FollowUp]
    deliveries: Sequence[Delivery]
    spec: ActionSpec | None
    model: Model | None = None
    unpriced: bool = False

    @property
    def type_title(self) -> str:
        """What such an action is called; its plain name where no installed package knows it."""
        return self.spec.title if self.spec is not None else self.action.sort

    @property
    def called(self) -> str:
        """Its name, or the title of its type."""
        return self.action.name or self.type_title

    @property
    def what(self) -> str:
        """What it does, in a sentence."""
        if self.spec is not None and self.spec.keeps is not None:
            quiet = f"{float(self.action.options['quiet_seconds']):g}"
            return f"Runs {quiet} s after documents were published, changed or deleted."
        if self.spec is None or self.spec.summary is None:
            params = (f"{name}: {value}" for name, value in self.action.options.items() if name != "sort")
            return ", ".join(params)
        return self.spec.summary(self.action.options)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many follow-ups are in each state that people ask for."""
        action = self.action
        ended = action.number(Status.CANCELLED, Status.SUPERSEDED, Status.IDLE)
        counts = {
            "running": action.running,
            "done": action.number(Status.SUCCESS),
            "failed": action.number(Status.FAILED),
            "ended early": ended,
        }
        return [(word, number) for word, number in counts.items() if number]


@router.get("/collections/{name}/actions")
def actions(request: Request, services: Services, who: rendering.Who, collection: PathCollection) -> Response:
    """Show the actions of a collection and their results."""
    listed = services.actions.all(who.tenant, collection.id)
    cards = _cards(services, who.tenant, listed)
    names = {each.subject.partition(":")[2] for card in cards for each in card.results}
    return rendering.page(
        request,
        who,
        "actions.html",
        f"Actions of {collection.title}",
        collection=collection,
        actions=len(cards),
        cards=cards,
        types=services.actions.types,
        form_fields=forms.fields,
        own_view=forms.outcome_view(services.actions.types),
        titles={
            each.document.id: each.document.title
            for each in services.views.some(who.tenant, collection.id, names)
        },
        model=services.jobs.model,
        unpriced=services.actions.is_unpriced(services.jobs.model),
    )


def _cards(services: AppServices, tenant: str, listed: Sequence[Action]) -> list[ActionCard]:
    hooks = {each.id for each in listed if each.sort == "webhook"}
    sent = services.deliveries.page(tenant, state=None, before=None, limit=DELIVERIES) if hooks else ()
    return [
        ActionCard(
            each,
            () if each.id in hooks else services.actions.lately(tenant, each.id, LATELY),
            [one for one in sent if one.action_id == each.id][:LATELY],
            services.actions.types.get(each.sort),
            model := services.actions.model(each),
            services.actions.is_unpriced(model),
        )
        for each in listed
    ]
