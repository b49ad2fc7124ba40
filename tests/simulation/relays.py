"""Relays in the simulated world: the real lease, marks and settlements, over a channel that breaks."""

import copy
from collections.abc import Callable
from typing import Any

from holdfast import faults
from holdfast.core.errors import HoldfastError, StoreUnavailableError
from holdfast.ledger import relay_talk
from holdfast.ledger.carrier import Carrier
from holdfast.ledger.exchanges import Exchanges
from holdfast.ledger.relay_talk import Ended, LostOrder, NotCarried, Reply, Unheard
from holdfast.relay.carrying import OrderCarrier
from holdfast.relay.lease import RelayIdentity, RelayLease
from holdfast.store.money.carried import OfferedOrder
from holdfast.store.money.relays import LockFile
from holdfast.testing.prices import PRICES
from tests.simulation.provider import Line
from tests.simulation.world import Actor, Process, Violation, World

# How often the channel between a worker and a relay breaks, at each message.
CUT = 0.04


class Talk:
    """One order between a worker and a relay, seen from both sides. It is the relay's `Waiter`."""

    def __init__(self, world: World, worker: Actor, order_id: str, holder: str, tries: int) -> None:
        self._world = world
        self._worker = worker
        self.order_id, self.holder, self.tries = order_id, holder, tries
        self.is_taken = self.is_marked = self.is_cut = self.is_draining = False
        self.reply: Reply | None = None

    def _arrives(self, change: Callable[[], None]) -> None:
        """The worker hears of it after a while, or the connection breaks."""
        world = self._world
        if self.is_cut:
            return
        if not world.calm and world.scenario.cuts_talks and world.rng.random() < CUT:
            world.faults["talk cut"] += 1
            self.cut()
            return

        def heard() -> None:
            if not self.is_cut:
                change()
                self._wake()

        world.after(world.latency(), heard)

    def _wake(self) -> None:
        if not self._worker.dead and not self._worker.process.dead:
            self._world.wake(self._worker)

    def cut(self) -> None:
        """Either side is gone."""
        self.is_cut = True
        self._wake()

    def still_waits(self) -> bool:
        return not (self.is_cut or self.is_draining or self._worker.process.dead)

    def marked(self) -> None:
        self._arrives(lambda: setattr(self, "is_marked", True))

    def hear(self, piece: str) -> None:
        """Nobody listens to streams here."""

    def taken(self) -> None:
        """The relay has the order."""
        self._arrives(lambda: setattr(self, "is_taken", True))

    def told(self, reply: Reply) -> None:
        """What came of it."""
        if isinstance(reply, Ended) and reply.failure is None:
            state = self._world.check.order_state(self.order_id)
            if state != "settled":
                raise Violation("G5", f"a worker is told of order {self.order_id[:8]}, which is {state}")
        self._arrives(lambda: setattr(self, "reply", reply))


class RelayHouse:
    """The relays of the world: started, killed, drained and replaced."""

    def __init__(self, world: World, storage: Any, service: Any, make: Callable[[str, str], Process]) -> None:
        self.world = world
        self._service = service
        self._make = make
        self._databases = [(storage.borrow(), storage.borrow()) for _ in range(2)]
        self._number = 0
        self.relays: list[Process] = []

    def start(self) -> Process:
        """A new relay: it registers, carries, and renews its lease."""
        scenario = self.world.scenario
        process = self._make(f"relay{self._number % 2}", "relay")
        database, watch = (copy.copy(one) for one in self._databases[self._number % 2])
        self._number += 1
        lock = LockFile(process.name, process.machine, "1")
        identity = RelayIdentity(process.name, "", "1")
        process.lease = RelayLease(watch, process.host, identity, lambda _relay: lock, scenario.terms)
        exchanges = Exchanges(
            database, process.host, PRICES, scenario.policy, Carrier(database, process.host)
        )
        line = {"sim": Line(self._service)}
        process.carrier = OrderCarrier(database, process.host, line, exchanges, lambda: process.lease.trust)
        process.talks, process.is_up, process.is_draining = {}, False, False
        self.relays.append(process)
        process.spawn("renew", lambda: self._renew(process))
        return process

    def _renew(self, process: Process) -> None:
        host = process.host
        while not process.is_up:
            try:
                process.lease.register()
                process.is_up = True
            except StoreUnavailableError:
                host.sleep(1.0)
        while not (process.is_draining and not process.talks):
            host.sleep(self.world.scenario.terms.renew_every)
            process.lease.renew(len(process.talks))
        while True:
            try:
                process.lease.leave()
                break
            except StoreUnavailableError:
                host.sleep(1.0)
        self.world.note("RELAY LEFT")
        self.world.after(0.1, lambda: self.world.kill(process, "drained"))

    def drain(self, process: Process) -> None:
        """It takes nothing more, drops what it has not marked, and leaves when the rest has ended."""
        process.is_draining = True
        for talk in list(process.talks.values()):
            talk.is_draining = True

        def drain() -> None:
            try:
                process.lease.drain()
            except StoreUnavailableError:
                self.world.note("not drained on record")

        process.spawn("drain", drain)

    def living(self) -> list[Process]:
        """Relays that a worker may reach."""
        return [one for one in self.relays if not one.dead and one.is_up and not one.is_draining]

    def died(self, process: Process) -> None:
        """Its connections break; after a while there is another one."""
        if process.role != "relay":
            return
        for talk in process.talks.values():
            talk.cut()
        if not self.world.over:
            delay = self.world.rng.choice((0.2, 1.0, 6.0))
            self.world.after(delay, lambda: None if self.world.over else self.start())

    def hand_over(self, relay: Process, talk: Talk) -> None:
        """The order arrives at the relay."""
        if relay.dead:
            talk.cut()
            return
        relay.spawn("carry", lambda: self._carry(relay, talk))

    def _carry(self, relay: Process, talk: Talk) -> None:
        if relay.is_draining:
            talk.told(NotCarried(relay_talk.DRAINING))
            return
        if talk.order_id in relay.talks:
            talk.told(LostOrder("sent"))
            return
        relay.talks[talk.order_id] = talk
        try:
            reply = self._carried(relay, talk)
        finally:
            relay.talks.pop(talk.order_id, None)
        faults.point("relay.tell")
        talk.told(reply)

    def _carried(self, relay: Process, talk: Talk) -> Ended | LostOrder | NotCarried:
        try:
            offer = relay.carrier.offered(talk.order_id, talk.holder)
            if not isinstance(offer, OfferedOrder):
                return offer
            talk.taken()
            faults.point("relay.taken")
            return relay.carrier.carry(offer, talk.tries, talk)
        except HoldfastError as error:
            return NotCarried(relay_talk.OTHER, error.message)


class WorkersDoor:
    """The relays as a worker sees them (`relay_talk.Relays`)."""

    def __init__(self, house: RelayHouse, process: Process) -> None:
        self._house = house
        self._process = process

    def is_there(self) -> bool:
        return bool(self._house.living())

    def close(self) -> None:
        """Nothing to close."""

    def carry(
        self,
        order_id: str,
        holder: str,
        *,
        tries: int,
        check: Callable[[], None],
        is_over: Callable[[], bool],
        hear: Callable[[str], None] | None = None,
    ) -> Reply:
        """As `RelayClient.carry`: the same limits of time, by the clock of the worker."""
        world, living = self._house.world, self._house.living()
        if not living:
            return NotCarried(relay_talk.UNREACHABLE)
        relay = world.rng.choice(living)
        talk = Talk(world, world.current, order_id, holder, tries)
        world.after(world.latency(), lambda: self._house.hand_over(relay, talk))
        if not world.calm and world.scenario.cuts_talks and world.rng.random() < CUT:
            world.faults["talk doubled"] += 1
            world.after(world.latency(), lambda: self._house.hand_over(relay, talk))
        try:
            return self._wait(talk, check, is_over)
        finally:
            talk.is_cut = True

    def _wait(self, talk: Talk, check: Callable[[], None], is_over: Callable[[], bool]) -> Reply:
        world, clock = self._house.world, self._process.clock
        until, was_taken = clock() + relay_talk.TAKEN_WITHIN, False
        look_at = clock() + relay_talk.LOOK_EVERY
        while True:
            if talk.reply is not None:
                return talk.reply
            if talk.is_cut:
                return Unheard() if talk.is_marked else NotCarried(relay_talk.UNREACHABLE)
            if talk.is_taken and not was_taken:
                was_taken, until = True, clock() + relay_talk.MARKED_WITHIN
            if not talk.is_marked and clock() >= until:
                return NotCarried(relay_talk.LATE)
            world.steps += 1
            if world.block(relay_talk.CHECK_EVERY):
                continue
            check()
            if talk.is_marked and clock() >= look_at:
                look_at = clock() + relay_talk.LOOK_EVERY
                if is_over():
                    return Unheard()
