"""What a seed means: workers, policy, what clients ask for and what goes wrong, all drawn up front."""

import random
from dataclasses import dataclass, field, replace

from holdfast.core.decide import SilenceLimits
from holdfast.core.retry import Backoff
from holdfast.leases.base import LeaseTerms
from holdfast.ledger.exchanges import Policy
from holdfast.providers.base import Profile

# Fault points that a schedule can be aimed at, and what must be in it for the point to be reached.
NEEDS: dict[str, tuple[str, ...]] = {
    "request": (),
    "claim": (),
    "renew": ("slow",),
    "stage": (),
    "advance": (),
    "plan": ("sliced",),
    "finish": (),
    "next_phase": ("phased",),
    "intend": (),
    "send": (),
    "send_at_once": ("on_board",),
    "settle": (),
    "enrol": (),
    "keep": (),
    "win": (),
    "release": ("drain",),
    "put_back": ("wait",),
    "fall_due": ("wait",),
    "fail": ("raise",),
    "cancel": ("cancel",),
    "delete": ("delete",),
    "doubt": ("cuts",),
    "resend": ("cuts",),
    "recover": ("kill",),
    "lose": ("kill",),
    "note_wait": ("rivals", "slow"),
    "expire": ("kill",),
    "park": ("cuts", "park"),
    "resolve": ("cuts", "park"),
    "void": ("refusals",),
    "throttle": ("refusals",),
    "abandon": ("poison",),
    "look_again": ("deliver", "slow"),
    "recompute": ("tidy",),
    "prune": ("tidy", "again"),
    "set_budget": ("budget",),
    "add_action": ("action",),
    "visit": ("action",),
    "remove_action": ("action",),
    "move": ("action",),
    "visited": ("action",),
    "seen_to": ("action",),
    "note_success": (),
    "note_failure": ("bad_duty",),
    "say": ("wait",),
}
ONE_SHOT = ("send.first_byte", "send.begun", "send.answered", "send.heard")
POINTS: tuple[str, ...] = (
    *(f"{verb}.{moment}" for verb in NEEDS for moment in ("commit", "committed")),
    *ONE_SHOT,
)
# Points that nearly every schedule passes, and so may be aimed at besides the target.
COMMON: tuple[str, ...] = (
    *(f"{verb}.{moment}" for verb, needs in NEEDS.items() if not needs for moment in ("commit", "committed")),
    *ONE_SHOT,
    "void.commit",
    "void.committed",
)
# Points that many schedules do not reach although they aim at them are aimed at more often.
RARE = {
    "abandon": 3,
    "look_again": 26,
    "lose": 3,
    "note_failure": 3,
    "next_phase": 2,
    "note_wait": 6,
    "plan": 2,
    "say": 5,
    "doubt": 3,
    "send_at_once": 4,
    "fail": 3,
    "fall_due": 4,
    "put_back": 4,
    "recover": 2,
    "release": 3,
    "park": 3,
    "resolve": 4,
    "remove_action": 4,
    "move": 2,
    "expire": 9,
    "renew": 4,
    "resend": 4,
    "prune": 2,
    "recompute": 2,
    "throttle": 4,
    "cancel": 2,
    "set_budget": 2,
    "delete": 2,
    "add_action": 2,
    "void": 2,
    "visit": 2,
    "visited": 2,
    "seen_to": 4,
}
# The end of contents that are done in phases; in a scenario of phases all are, in others none.
PHASED = "+"
WEIGHTS = tuple(RARE.get(point.partition(".")[0], 1) for point in POINTS)
EXTRAS = (
    "slow", "sliced", "drain", "wait", "raise", "cancel", "delete", "cuts", "kill", "park", "refusals",
    "poison", "hang", "nonsense", "reject", "deliver", "tidy", "again", "budget", "action", "takeover",
    "outage", "broker", "flaky", "rivals", "on_board", "bad_duty", "phased",
)  # fmt: skip
EXTRA_CHANCE = {"poison": 0.03, "hang": 0.02, "takeover": 0.06, "on_board": 0.25, "tidy": 0.3}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong: `what` happens at the `nth` passing of `where`, or at the moment `at`."""

    what: str
    where: str = ""
    nth: int = 1
    at: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientAction:
    """Something a client does at the moment `at`."""

    at: float
    client: int
    what: str
    tenant: str
    subject: str
    content: str = ""
    force: bool = False
    expect: int | None = None
    lane: str = "bulk"
    collection: str | None = None


@dataclass(slots=True)
class Scenario:
    """All that is decided before the first step."""

    seed: int
    features: frozenset[str]
    workers: int
    clients: int
    tight: bool
    terms: LeaseTerms
    profile: Profile
    policy: Policy
    patience: SilenceLimits
    tidy_every: float
    sweep_every: float
    poll: float
    span: float
    moods: dict[str, float]
    loss: float
    deeds: list[ClientAction] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    lock_held_delay: float = 3.0
    history_retention: float | None = None
    # Who is on one machine can tell whether another process there has died.
    machines: tuple[str, ...] = ("here",)
    # Orders are carried by relays; `only_workers`: nothing else goes wrong.
    relay: bool = False
    cuts_talks: bool = False
    only_workers: bool = False


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"scenario-{seed}")
    target = rng.choices(POINTS, WEIGHTS)[0]
    features = set(NEEDS.get(target.partition(".")[0], ()))
    features |= {name for name in EXTRAS if rng.random() < EXTRA_CHANCE.get(name, 0.1)}
    keyed = rng.random() < 0.5 and "park" not in features
    ttl = rng.choice((6.0, 6.0, 12.0))
    scenario = Scenario(
        seed=seed,
        features=frozenset(features),
        workers=rng.choice((1, 2, 2, 2, 3)),
        clients=rng.choice((1, 2)),
        tight=rng.random() < 0.6,
        terms=LeaseTerms(ttl=ttl, renew_every=ttl / 3, margin=ttl / 6),
        profile=_profile(rng, keyed=keyed, on_board="on_board" in features),
        policy=_policy(rng, park="park" in features),
        patience=SilenceLimits(1.0, 3.0) if "takeover" in features else SilenceLimits(),
        tidy_every=4.0 if "tidy" in features else 30.0,
        sweep_every=rng.choice((2.0, 4.0, 4.0)),
        poll=rng.choice((5.0, 20.0)),
        span=rng.choice((2.0, 5.0, 10.0)),
        moods=_moods(rng, features),
        loss=rng.choice((0.0, 0.1, 0.5)) if "broker" in features else rng.choice((0.0, 0.0, 0.05)),
        history_retention=rng.choice((None, None, None, 5.0)),
        machines=rng.choice((("here",), ("here", "there"), ("here", "there"))),
    )
    scenario.deeds = _deeds(rng, features, scenario, target)
    scenario.faults = _faults(rng, features, scenario, target)
    return _relayed(scenario)


RELAY_POINTS = (
    *(f"{verb}.{moment}" for verb in ("mark", "settle", "adopt") for moment in ("commit", "committed")),
    "bury_relay.commit",
    "bury_relay.committed",
    "register_relay.committed",
    "renew_relay.committed",
    "relay.taken",
    "relay.heard",
    "relay.settled",
    "relay.tell",
    "send.first_byte",
    "send.begun",
)


def _relayed(scenario: Scenario) -> Scenario:
    """Some schedules have relays. Their dice are their own: those of the others stay what they were."""
    rng = random.Random(f"relay-{scenario.seed}")
    if rng.random() >= 0.3 or scenario.profile.in_process:
        return scenario
    scenario.relay = True
    required = rng.random() < 0.5
    scenario.policy = replace(scenario.policy, relay_required=required)
    if required and rng.random() < 0.4:
        return _only_workers(scenario, rng)
    scenario.cuts_talks = rng.random() < 0.7
    for _ in range(rng.choice((1, 1, 2))):
        what = rng.choices(("crash", "freeze", "lost_answer", "commit_error"), (6, 3, 1, 1))[0]
        where = rng.choice(RELAY_POINTS)
        moment = where.partition(".")[2]
        if what in {"lost_answer", "commit_error"} and moment not in {"commit", "committed"}:
            what = "crash"
        elif what in {"lost_answer", "commit_error"}:
            what = "lost_answer" if moment == "committed" else "commit_error"
        seconds = rng.uniform(0.3, 3.0) * scenario.terms.ttl
        scenario.faults.append(Fault(what, where, rng.choice((1, 1, 2, 3)), seconds=seconds))
    for what in ("kill_relay", "stop_relay", "drain_relay", "kill_relay"):
        if rng.random() < 0.35:
            seconds = rng.choice((0.5, 1.1, 2.5)) * scenario.terms.ttl
            scenario.faults.append(Fault(what, at=rng.uniform(0.3, 6.0), seconds=seconds))
    return scenario


def _only_workers(scenario: Scenario, rng: random.Random) -> Scenario:
    """Workers die, and nothing else: then nothing may be paid twice, whoever the provider is."""
    scenario.only_workers = True
    scenario.moods = {"slow": 0.4}
    scenario.profile = replace(scenario.profile, honours_keys=False, key_retention=0.0, deadline=8.0)
    worker_faults = {"kill", "drain", "stop", "crash", "flush", "broker_down"}
    scenario.faults = [each for each in scenario.faults if each.what in worker_faults]
    for _ in range(rng.choice((2, 3, 4))):
        scenario.faults.append(Fault("kill", at=rng.uniform(0.1, scenario.span)))
    return scenario


def _profile(rng: random.Random, *, keyed: bool, on_board: bool) -> Profile:
    return Profile(
        name="sim",
        honours_keys=keyed,
        key_retention=rng.choice((25.0, 1e6)) if keyed else 0.0,
        max_inputs=rng.choice((1, 2, 4, 4)),
        max_tokens=1000,
        deadline=rng.choice((3.0, 8.0)),
        uncharged=frozenset({503}) if rng.random() < 0.5 else frozenset(),
        in_process=on_board,
    )


def _policy(rng: random.Random, *, park: bool) -> Policy:
    return Policy(
        concurrency=rng.choice((1, 3)),
        wait=rng.choice((2.0, 6.0)),
        poll=0.4,
        in_doubt="park" if park else "resend",
        stale_intent=rng.choice((5.0, 15.0)),
        budget_delay=4.0,
        parked_delay=4.0,
        backoff=Backoff(first=0.3, factor=2.0, most=3.0),
    )


def _moods(rng: random.Random, features: set[str]) -> dict[str, float]:
    """How likely each misbehaviour of the provider is, per exchange."""
    moods = {"slow": 0.1, "unreachable": 0.03}
    if "cuts" in features:
        moods |= {
            "cut_before": rng.uniform(0.0, 0.25),
            "cut_after": rng.uniform(0.1, 0.5),
            "stall": 0.1,
            "error": 0.1,
        }
    if "refusals" in features:
        moods |= {"busy": rng.uniform(0.1, 0.5), "unavailable": 0.1, "unreachable": 0.1}
    if "slow" in features:
        moods["slow"] = 0.6
    return moods


def _deeds(  # noqa: C901 - a feature per branch
    rng: random.Random, features: set[str], scenario: Scenario, target: str
) -> list[ClientAction]:
    tenants = rng.choice((("t1",), ("t1", "t2")))
    places = [(rng.choice(tenants), f"document:{n}") for n in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    collection = rng.choice((None, "col1", "col1"))
    if "action" in features:
        collection = "col1"
    flavours = [
        name for name in ("raise", "nonsense", "wait", "poison", "hang", "reject") if name in features
    ]
    lane = rng.choice(("bulk", "bulk", "interactive"))
    if "rivals" in features:
        places = [(tenants[0], f"document:{n}") for n in range(3)]
    deeds: list[ClientAction] = []

    def add(what: str, at: float | None = None, **details: object) -> None:
        tenant, subject = rng.choice(places)
        when = at if at is not None else rng.choice((rng.uniform(0.0, scenario.span), 0.01, 2.0))
        values = {"lane": lane, "collection": collection} | details
        deeds.append(ClientAction(when, rng.randrange(scenario.clients), what, tenant, subject, **values))

    size = "sliced" if "sliced" in features else rng.choice(("one", "one", "one", "sliced"))
    for tenant, subject in places:
        deeds.append(
            ClientAction(0.0, 0, "request", tenant, subject, f"{size}:a", lane=lane, collection=collection)
        )
    for flavour in flavours:
        add("request", content=f"{flavour}:{rng.choice('ab')}", at=rng.uniform(0.0, 3.0))
    for what in ("cancel", "delete"):
        if what in features:
            add(what, at=rng.uniform(0.0, 4.0))
    if "delete" in features or "again" in features:
        add(
            "request",
            content=f"{size}:{rng.choice('ab')}",
            at=rng.uniform(1.0, 6.0),
            force=rng.random() < 0.5,
        )
    if "action" in features:
        # Only an action that is there can be removed, and only one that was removed is seen to.
        removed = target.startswith(("remove_action", "seen_to"))
        add("add_action", at=rng.uniform(0.0, 1.0 if removed else 4.0))
        add("remove_action", at=rng.uniform(1.5, 6.0) if removed else rng.uniform(0.0, 4.0))
        add("move", at=rng.uniform(0.0, 4.0))
    if "budget" in features:
        add("tighten", at=rng.uniform(0.0, 2.0))
        add("loosen", at=rng.uniform(2.0, 8.0))
    if "takeover" in features:
        for _ in range(3):
            add("request", content=f"{size}:a", at=rng.uniform(1.5, 14.0))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        what = rng.choices(("request", "again", "cancel", "delete", "look"), (6, 2, 1, 1, 2))[0]
        expect = rng.choice((0, 1, 2)) if rng.random() < 0.15 else None
        content = f"{rng.choice((size, size, 'one'))}:{rng.choice('aab')}"
        add(what, content=content, force=rng.random() < 0.2, expect=expect)
    if "phased" in features:
        deeds = [replace(deed, content=f"{deed.content}{PHASED}") for deed in deeds]
    return sorted(deeds, key=lambda deed: deed.at)


def _faults(rng: random.Random, features: set[str], scenario: Scenario, target: str) -> list[Fault]:
    ttl = scenario.terms.ttl
    type_name = rng.choices(("crash", "freeze", "answer"), (8, 1, 1))[0]
    if type_name == "answer":
        type_name = {"committed": "lost_answer", "commit": "commit_error"}.get(
            target.partition(".")[2], "crash"
        )
    verb = target.partition(".")[0]
    nth = rng.choice((1, 1, 1, 2, 3)) if verb not in RARE else 1
    planned = [Fault(type_name, target, nth, seconds=rng.uniform(0.3, 2.5) * ttl)]
    if rng.random() < 0.4:
        planned.append(Fault("crash", rng.choice(COMMON), rng.choice((1, 1, 2, 3, 5))))
    if "kill" in features:
        marks = (
            ("send_at_once.committed",) if "on_board" in features else ("intend.committed", "send.committed")
        )
        planned.append(Fault("crash", rng.choice(("send.begun", "send.heard", *marks, "stage.commit")), 1))
    if "drain" in features:
        planned.append(Fault("drain", at=rng.uniform(0.05, 3.0)))
    if "outage" in features:
        planned.append(
            Fault("outage", at=rng.uniform(0.0, 4.0), seconds=rng.choice((1.0, 4.0, ttl * 1.5, 25.0)))
        )
    if "broker" in features:
        planned.append(Fault(rng.choice(("flush", "broker_down")), at=rng.uniform(0.0, 5.0), seconds=6.0))
    planned.extend(_any_fault(rng, scenario, ttl) for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))
    return planned


def _any_fault(rng: random.Random, scenario: Scenario, ttl: float) -> Fault:
    what = rng.choices(
        (
            "crash",
            "freeze",
            "cut",
            "locked",
            "lost_answer",
            "commit_error",
            "cut_holder",
            "jump",
            "kill",
            "stop",
        ),
        (4, 4, 2, 1, 3, 2, 1, 1, 2, 2),
    )[0]
    seconds = rng.choice((0.5, 1.1, 1.1, 2.0)) * ttl + rng.random()
    if what in {"crash", "freeze", "cut", "locked"}:
        return Fault(what, "step", rng.randrange(3, 220), seconds=seconds)
    if what == "lost_answer":
        verb = rng.choice(tuple(NEEDS))
        return Fault(what, f"{verb}.committed", rng.choice((1, 2, 3)))
    if what == "commit_error":
        verb = rng.choice(tuple(NEEDS))
        return Fault(what, f"{verb}.commit", rng.choice((1, 2, 3)))
    return Fault(what, at=rng.uniform(0.0, scenario.span), seconds=seconds)
