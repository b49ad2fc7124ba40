"""Every scenario by number, and the cells of the table that cannot exist, with the reason."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.chaos import stacks
from holdfast.chaos.figures import Figures
from holdfast.chaos.scenarios import cuts, deaths, messages, outages, provider, relays, requests
from holdfast.chaos.servers import Servers
from holdfast.chaos.stacks import EMBEDDED, Stack
from holdfast.testing.meter import Meter

Play = Callable[[Stack, Meter, random.Random], Figures]

BROKER, DATABASE = frozenset({"broker"}), frozenset({"database"})
NO_BROKER_SERVER = {EMBEDDED: "the embedded broker is a folder: there is no server to stop or to cut off"}
NO_DATABASE_SERVER = {EMBEDDED: "SQLite is a file: there is no server to restart or to cut off"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table.

    `keyed`: whether the provider honours keys; None leaves it to chance. `own` names the servers that the
    scenario stops and therefore must have for itself. `short` is the same story for every test run.
    """

    number: str
    title: str
    play: Play
    keyed: bool | None = None
    own: frozenset[str] = frozenset()
    impossible: Mapping[str, str] = field(default_factory=dict)
    short: Play | None = None

    def run(self, servers: Servers, stack_name: str, rng: random.Random, *, quick: bool = False) -> Figures:
        """What the scenario measured on a fresh stack; ScenarioFailedError when a promise was broken."""
        keyed = rng.random() < 0.5 if self.keyed is None else self.keyed
        play = self.short if quick and self.short is not None else self.play
        with stacks.opened(servers, stack_name, self.own) as stack, Meter(honour_keys=keyed) as meter:
            return play(stack, meter, rng)


SCENARIOS = (
    Scenario("1", "100 duplicate requests at once", requests.duplicates),
    Scenario("2", "kill -9, again and again", deaths.kills, short=partial(deaths.kills, times=1)),
    Scenario("3", "frozen beyond its lease, thawed", deaths.freeze),
    Scenario("4", "redelivery storm", messages.redelivery_storm),
    Scenario("5a", "broker cut off before the ack", cuts.broker, impossible=NO_BROKER_SERVER),
    Scenario("5b", "database cut off", cuts.database, impossible=NO_DATABASE_SERVER),
    Scenario("5c", "provider cut off", cuts.provider),
    Scenario("6a", "broker flushed", outages.broker_flushed, own=BROKER),
    Scenario("6b", "broker down for 30 s", outages.broker_stopped, own=BROKER, impossible=NO_BROKER_SERVER),
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
    Scenario("11", "replaced and cancelled", requests.replace_and_cancel),
    Scenario("12", "two brokers, one removed", outages.two_brokers, own=BROKER),
    Scenario("13", "behind a thousand tasks", messages.fair_turns),
    Scenario("15", "a storm of kills, 6 s an order", deaths.storm, keyed=False),
    Scenario(
        "16",
        "workers killed, a relay carries",
        relays.worker_kills,
        keyed=False,
        short=partial(relays.worker_kills, times=1),
    ),
    Scenario("17", "the relay killed too", relays.relay_kills, keyed=False),
    Scenario("18", "relay and workers replaced", relays.rolling_deploy, keyed=False),
)
