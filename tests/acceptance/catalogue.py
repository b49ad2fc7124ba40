"""Every scenario by number, and the cells of the table that cannot exist, with the reason."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.testing.meter import Meter
from tests.acceptance import stacks
from tests.acceptance.figures import Figures
from tests.acceptance.scenarios import asking, cuts, deaths, messages, outages, provider, serving
from tests.acceptance.stacks import EMBEDDED, Stack

Play = Callable[[Stack, Meter, random.Random], Figures]

BROKER, DATABASE = frozenset({"broker"}), frozenset({"database"})
NO_BROKER_SERVER = {EMBEDDED: "the embedded broker is a folder: there is no server to stop or to cut off"}
NO_DATABASE_SERVER = {EMBEDDED: "SQLite is a file: there is no server to restart or to cut off"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table.

    `keyed`: whether the provider honours keys; None leaves it to chance. `own` names the servers that the
    scenario stops and therefore must have for itself.
    """

    number: str
    title: str
    play: Play
    keyed: bool | None = None
    own: frozenset[str] = frozenset()
    impossible: Mapping[str, str] = field(default_factory=dict)

    def run(self, stack_name: str, rng: random.Random, *, quick: bool = False) -> Figures:
        """What the scenario measured on a fresh stack; an AssertionError when a promise was broken."""
        keyed = rng.random() < 0.5 if self.keyed is None else self.keyed
        play = QUICK.get(self.number, self.play) if quick else self.play
        with stacks.opened(stack_name, self.own) as stack, Meter(honour_keys=keyed) as meter:
            return play(stack, meter, rng)


SCENARIOS = (
    Scenario("1", "100 duplicate requests at once", asking.duplicates),
    Scenario("2", "kill -9, again and again", deaths.kills),
    Scenario("3", "frozen beyond its lease, thawed", deaths.freeze),
    Scenario("4", "redelivery storm", messages.redelivery_storm),
    Scenario("5a", "broker cut off before the ack", cuts.broker, impossible=NO_BROKER_SERVER),
    Scenario("5b", "database cut off", cuts.database, impossible=NO_DATABASE_SERVER),
    Scenario("5c", "provider cut off", cuts.provider),
    Scenario("6a", "broker flushed", outages.broker_flushed, own=BROKER),
    Scenario("6b", "broker away for 30 s", outages.broker_stopped, own=BROKER, impossible=NO_BROKER_SERVER),
    Scenario(
        "6c", "broker not up at the start", outages.broker_never_up, own=BROKER, impossible=NO_BROKER_SERVER
    ),
    Scenario(
        "7a", "database restarted", outages.database_restarted, own=DATABASE, impossible=NO_DATABASE_SERVER
    ),
    Scenario("7b", "connections killed", outages.database_connections_killed, impossible=NO_DATABASE_SERVER),
    Scenario("8", "rolling restart of 3 workers", deaths.rolling_restart, keyed=False),
    Scenario("9a", "provider misbehaves, keyed", provider.misbehaves, keyed=True),
    Scenario("9b", "provider misbehaves, no keys", provider.misbehaves, keyed=False),
    Scenario("10", "poison and a hang", deaths.poison, keyed=False),
    Scenario("11", "replaced and cancelled", asking.replace_and_cancel),
    Scenario("12", "two brokers, one removed", outages.two_brokers, own=BROKER),
    Scenario("13", "behind a thousand tasks", messages.fair_turns),
    Scenario("14", "uploads while all goes away", serving.faults, keyed=True, own=BROKER | DATABASE),
    Scenario("15", "a storm of kills, 6 s an order", deaths.storm, keyed=False),
)
BY_NUMBER = {scenario.number: scenario for scenario in SCENARIOS}

# The same stories, shorter, for every test run.
QUICK: dict[str, Play] = {
    "2": partial(deaths.kills, times=1),
}
