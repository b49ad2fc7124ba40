"""Actions of collections and their deliveries: add, read, remove, send again."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from holdfast.core import keys, subjects
from holdfast.core.errors import BadRequestError, HoldfastError, NotFoundError
from holdfast.core.records import Fenced, Landed
from holdfast.core.states import Lane
from holdfast.core.text import is_plain
from holdfast.documents import addresses
from holdfast.engine.engine import Engine
from holdfast.engine.job_specs import ActionSpec
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.kinds import actions as kinds
from holdfast.kinds import model_calls, parameters, webhook_signature
from holdfast.service.requests import RequestContext
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import actions, delivery_attempts, follow_up_retries, follow_ups, webhook_tests
from holdfast.store.follow_ups.delivery_attempts import Delivery
from holdfast.store.follow_ups.follow_ups import Action, FollowUp
from holdfast.store.library.documents import Document
from holdfast.store.money import estimates

# Ready documents that are handled before the request is answered; the sweep does the rest.
VISITED_AT_ONCE = 50
VISITED_PER_TURN = 500
MOST_NAME = 200
SECRET_SIZES = range(16, 257)


@dataclass(frozen=True, slots=True)
class ActionAddition:
    """An action, whether it is new, and the secret that was drawn for it: shown here and never again.

    `ready` is on how many documents it is carried out that were ready before it was added.
    """

    action: Action
    created: bool
    secret: str | None
    ready: int = 0


class Actions:
    """The actions of collections."""

    def __init__(
        self,
        engine: Engine,
        key: str | None = None,
        *,
        allow_private: bool = False,
        supplies: Supplies | None = None,
    ) -> None:
        self._engine = engine
        self._db = engine.db
        self._key = key
        self._allow_private = allow_private
        self._supplies = supplies or Supplies()

    def add(
        self,
        wish: RequestContext,
        collection: str,
        action_type: str,
        params: Mapping[str, Any],
        *,
        name: str = "",
        existing: bool = True,
    ) -> ActionAddition:
        """The collection has this action; ready documents are followed up, some at once and the rest soon.

        Without `existing` only documents that become ready from now on are. The same action twice is one
        action: two clicks fire once.
        """
        secret = checked_secret(params.get("secret")) if action_type == "webhook" else None
        options = self.checked(action_type, params)
        named = _named(name)
        kind, pipeline = kinds.kind_of(self._engine.registry, action_type)
        stored_secret = secret or (
            webhook_signature.stored_form(self._key, secrets.token_urlsafe(32))
            if action_type == "webhook"
            else None
        )
        before = {each.id for each in self.all(wish.tenant, collection)}
        action_id = actions.add_action(
            self._db,
            tenant=wish.tenant,
            collection=collection,
            kind=kind,
            options=options,
            pipeline=pipeline,
            token=keys.digest(collection, keys.canonical(options), named, secret or ""),
            actor=wish.actor,
            name=named,
            secret=stored_secret,
            most=VISITED_AT_ONCE,
            existing=existing,
        )
        self._engine.wake({Lane.FOLLOW_UP: 1})
        action = self.one(wish.tenant, collection, action_id)
        mine = stored_secret is not None and actions.secret_of(self._db, action_id) == stored_secret
        drawn = (
            webhook_signature.secret(self._key, stored_secret)
            if stored_secret is not None and mine and secret is None
            else None
        )
        ready = estimates.ready(self._db, wish.tenant, collection) if existing else 0
        return ActionAddition(action, action_id not in before, drawn, ready)

    def checked(self, action_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What a follow-up of such an action is frozen with; BadRequestError for what can never be done."""
        _, spec = self._engine.registry.action(action_type)
        own = {name: value for name, value in params.items() if (action_type, name) != ("webhook", "secret")}
        options = {"sort": action_type, **parameters.checked(spec, own)}
        if action_type == "webhook" and not self._allow_private:
            check_public(options["url"])
        if options.get("provider") is not None:
            model_calls.chosen(self._supplies, options)
        return options

    def model(self, action: Action) -> Model | None:
        """The language model that an action asks; None for one that asks none, or whose provider is gone."""
        spec = self.types.get(action.sort)
        if spec is None or not spec.asks_model:
            return None
        try:
            return model_calls.chosen(self._supplies, action.options)
        except HoldfastError:
            return None

    def is_unpriced(self, model: Model | None) -> bool:
        """True for a model, of a provider that is set up here, that no price is known for."""
        parts = self._engine.parts
        if model is None or model.provider not in parts.providers:
            return False
        return parts.prices.price(model.name, model.provider) is None

    def all(self, tenant: str, collection: str) -> list[Action]:
        """The collection's actions."""
        return follow_ups.actions_of(self._db, tenant, collection)

    def one(self, tenant: str, collection: str, action_id: int) -> Action:
        """The action; NotFoundError when the collection has none such."""
        for each in self.all(tenant, collection):
            if each.id == action_id:
                return each
        raise NotFoundError(f"there is no action {action_id} in this collection", code="unknown_action")

    def remove(self, wish: RequestContext, collection: str, action_id: int) -> Action:
        """The action fires no more; its follow-ups and deliveries that have not ended are cancelled."""
        action = self.one(wish.tenant, collection, action_id)
        if isinstance(actions.remove_action(self._db, wish.tenant, action_id, actor=wish.actor), Fenced):
            raise NotFoundError(f"there is no action {action_id} in this collection", code="unknown_action")
        return action

    def test(self, wish: RequestContext, collection: str, action_id: int) -> str:
        """The id of a test event that is on its way to the webhook; BadRequestError for another sort.

        A test that is on its way already is sent at once instead, whenever its next try was to be.
        """
        if self.one(wish.tenant, collection, action_id).sort != "webhook":
            raise BadRequestError("only a webhook can be tested", code="bad_params")
        event_id = self._engine.host.token()
        outcome = webhook_tests.send_test(
            self._db,
            tenant=wish.tenant,
            collection=collection,
            action_id=action_id,
            event_id=event_id,
            actor=wish.actor,
        )
        if isinstance(outcome, Fenced):
            raise NotFoundError(f"there is no action {action_id} in this collection", code="unknown_action")
        if isinstance(outcome, str):
            run_id = self._engine.host.token()
            delivery_attempts.resend(self._db, wish.tenant, outcome, run_id=run_id, actor=wish.actor)
        self._engine.wake({Lane.FOLLOW_UP: 1})
        return outcome if isinstance(outcome, str) else event_id

    def hooks(self, tenant: str) -> list[Action]:
        """The webhooks of all collections of the tenant."""
        return follow_ups.hooks(self._db, tenant)

    def retry(self, wish: RequestContext, document: Document, action_id: int) -> FollowUp:
        """What the action does with the document is asked for once more.

        NotFoundError when nothing followed, BadRequestError when there is nothing to be done again.
        """
        subject = follow_up_retries.subject_of(subjects.of_document(document.id), action_id)
        run_id = self._engine.host.token()
        outcome = follow_up_retries.retry(self._db, wish.tenant, subject, run_id=run_id, actor=wish.actor)
        if isinstance(outcome, Fenced):
            raise _not_retried(outcome.reason, action_id)
        self._engine.wake({Lane.FOLLOW_UP: 1})
        return next(each for each in self.of_document(document, wish.tenant) if each.run_id == run_id)

    def lately(self, tenant: str, action_id: int, limit: int) -> Sequence[FollowUp]:
        """What the action did with documents, the newest first."""
        return follow_ups.of_action(self._db, tenant, action_id, limit)

    @property
    def types(self) -> Mapping[str, ActionSpec]:
        """The types of actions, by name."""
        return self._engine.registry.actions

    def of_document(self, document: Document, tenant: str) -> Sequence[FollowUp]:
        """What actions did with the document."""
        if document.head_id is None:
            return ()
        return follow_ups.of_document(self._db, tenant, document.head_id)


class Deliveries:
    """Webhook deliveries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = engine.db

    def page(self, tenant: str, *, state: str | None, before: int | None, limit: int) -> Sequence[Delivery]:
        """The tenant's deliveries, the newest first."""
        start = delivery_attempts.FROM_THE_END if before is None else before
        return delivery_attempts.page(self._db, tenant, state=state, before=start, limit=limit)

    def one(self, tenant: str, event_id: str) -> Delivery:
        """The delivery; NotFoundError when the tenant has none such."""
        delivery = delivery_attempts.one(self._db, tenant, event_id)
        if delivery is None:
            raise NotFoundError(f"there is no delivery {event_id!r}", code="unknown_delivery")
        return delivery

    def resend(self, wish: RequestContext, event_id: str) -> bool:
        """The event is due at once; False when it is being sent anyway."""
        self.one(wish.tenant, event_id)
        run_id = self._engine.host.token()
        outcome = delivery_attempts.resend(self._db, wish.tenant, event_id, run_id=run_id, actor=wish.actor)
        if isinstance(outcome, Landed):
            self._engine.wake({Lane.FOLLOW_UP: 1})
        return isinstance(outcome, Landed)


class Visits:
    """A duty of the sweep: new actions go on looking at ready documents where they stopped, and what removed
    ones have under way is ended.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def __call__(self) -> int:
        """One turn; answers how many follow-ups were made or ended. The sweep's own look wakes for them."""
        created = sum(
            actions.visit(self._db, action_id, VISITED_PER_TURN)
            for action_id in actions.unvisited(self._db, 10)
        )
        ended = sum(
            actions.cancel_follow_ups(self._db, tenant, action_id, most=VISITED_PER_TURN)
            for action_id, tenant in actions.unended(self._db, 10)
        )
        return created + ended


def _not_retried(reason: str, action_id: int) -> BadRequestError | NotFoundError:
    if reason == "unknown":
        message = f"action {action_id} has not run on this document; there is nothing to retry"
        return NotFoundError(message, code="unknown_action")
    messages = {
        "action_removed": "its action was removed; add the action again",
        "run_success": "it has succeeded; there is nothing to retry",
    }
    message = messages.get(reason, "it is already queued or running; wait for it to end")
    return BadRequestError(message, code="nothing_to_retry")


def check_public(url: str) -> None:
    """Return if the URL may be posted to as far as can be told now; BadRequestError says what allows it.

    What its name resolves to is not repeated: it may be known inside this network only.
    """
    host = urlsplit(url).hostname or ""
    if addresses.is_forbidden(host):
        message = (
            f"{host} is in a private or local network, where webhooks are not allowed;"
            " HOLDFAST_WEBHOOK_PRIVATE=true allows it"
        )
        raise BadRequestError(message, code="url_forbidden")


def checked_callback(callback: Mapping[str, str] | None, *, allow_private: bool) -> dict[str, str] | None:
    """Whom to tell when a run ends, as it is kept with the run; BadRequestError for what can never be told.

    Every callback is checked here, by the rule for webhooks, whatever the run that it is about.
    `link` is the base URL by which the caller reached this installation: the event links to the run there.
    """
    if callback is None:
        return None
    secret = checked_secret(callback.get("secret"))
    more = {"secret": secret, "link": callback.get("link")}
    url = kinds.checked_url(callback["url"])
    if not allow_private:
        check_public(url)
    return {"url": url} | {key: text for key, text in more.items() if text}


def checked_secret(secret: object) -> str | None:
    """The secret if it can sign; BadRequestError for one that is too short to."""
    if secret is None:
        return None
    fits = isinstance(secret, str) and len(secret) in SECRET_SIZES and is_plain(secret)
    fits = fits and not webhook_signature.is_derived(str(secret))  # else it would be taken for one of ours
    if not isinstance(secret, str) or not fits:
        sizes = f"{SECRET_SIZES[0]} to {SECRET_SIZES[-1]}"
        message = f"a secret has {sizes} characters; omit it to have one generated"
        raise BadRequestError(message, code="bad_secret")
    return secret


def _named(name: str) -> str:
    text = " ".join(name.split())
    if len(text) > MOST_NAME or not is_plain(text):
        raise BadRequestError(f"a name has at most {MOST_NAME} plain characters", code="bad_name")
    return text
