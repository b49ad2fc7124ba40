"""The cap holds while eight processes spend at once, and while one dies at any point; then it is raised."""

import threading
from contextlib import closing

import pytest

from holdfast import faults
from holdfast.engine.sweep import SweepRules
from holdfast.ledger.exchanges import Policy
from holdfast.service.billing import Billing
from holdfast.store.money import budgets
from holdfast.testing.meter import Meter
from holdfast.testing.prices import PRICES
from tests.races import actor
from tests.races.arena import Arena, eventually

pytestmark = pytest.mark.g5

PRICE = PRICES.cost("small", 1)
SCOPES = ("tenant", "collection:books")
# Every fault point between a claim and the end of a task that pays, or waits for money; compared below.
POINTS = [
    *("keep.commit", "keep.committed", "claim.commit", "claim.committed"),
    *("intend.commit", "intend.committed"),
    *("send.commit", "send.committed", "send.first_byte", "send.begun", "send.answered", "send.heard"),
    *("settle.commit", "settle.committed", "stage.commit", "stage.committed"),
    *("finish.commit", "finish.committed", "put_back.commit", "put_back.committed"),
    *("say.commit", "say.committed"),
]
# What a sweep passes besides; of these the reservations are what matters here.
SWEEPING = [
    f"{verb}.{moment}"
    for verb in ("enrol", "win", "recompute", "prune", "note_success")
    for moment in ("commit", "committed")
]
# Where money is promised or gone and not everybody knows.
PAYING = [
    *("intend.committed", "send.committed", "send.first_byte", "send.begun", "send.answered"),
    *("send.heard", "settle.commit", "put_back.commit"),
]
CROWD = 8


@pytest.fixture(autouse=True)
def cast():
    """No process outlives its story."""
    yield actor.CAST
    while actor.CAST:
        actor.CAST.pop().clean_up()


@pytest.fixture
def meter():
    """A provider that honours keys: an order that a death left open costs nothing more."""
    with Meter(honour_keys=True) as created:
        yield created


@pytest.fixture
def arena(database_url):
    created = Arena(database_url)
    yield created
    created.close()


@pytest.fixture
def pg_arena(postgresql_url):
    created = Arena(postgresql_url)
    yield created
    created.close()


def shelve(arena, count, cap):
    """So many documents of one paid word each, and two budgets for `cap` of them."""
    for number in range(count):
        about = {"kind": "batch", "subject": f"document:{number}", "pipeline": "batch@1"}
        arena.ask(**about, options={"words": [f"w{number}"]}, collection="books")
    for scope in SCOPES:
        budgets.set_budget(arena.db, "default", scope, hard=cap * PRICE)


def holds(arena, cap):
    """True while neither budget has promised more than its cap."""
    result = budgets.of_tenant(arena.db, "default")
    return len(result) == len(SCOPES) and all(each.used <= cap * PRICE for each in result)


def published(arena):
    return arena.count("heads", status="success")


def part(arena, meter, **more):
    patient = Policy(poll=0.01, wait=10.0, budget_delay=3600.0)
    # The oldest task is claimed by whoever comes next: four deaths in a row would be put down to the task.
    rules = SweepRules(interval=0.1, tidy_every=0.1, attempt_cap=100)
    values = {"terms": actor.SHORT, "policy": patient, "rules": rules}
    return actor.Part(arena.url, meter.base_url, **values | more)


def test_eight_processes_stop_at_the_cap_and_go_on_when_it_is_raised(arena, meter):
    """Twelve documents, money for five: five are paid, seven wait; raised, the seven follow at once."""
    shelve(arena, 12, cap=5)
    broken, over = [], threading.Event()

    def watch():
        while not over.wait(0.02):
            if not holds(arena, 5):
                broken.append(budgets.of_tenant(arena.db, "default"))

    guard = threading.Thread(target=watch)
    guard.start()
    # One after another: eight that import at once on a busy machine would each be late.
    crowd = [actor.Process(part(arena, meter, owner=f"worker-{n}", tireless=True)).ready() for n in range(8)]
    for process in crowd:
        process.go()
    eventually(lambda: arena.count("tasks", state="waiting") == 7 and published(arena) == 5, 60)
    over.set()
    guard.join(20)
    assert broken == []
    assert meter.totals().charges == 5
    with closing(actor.client(part(arena, meter))) as provider:
        engine = actor.engine(part(arena, meter), provider)
        money = Billing(engine)
        assert money.set_budget("default", "tenant", hard=1).resumed == 7
        eventually(lambda: arena.count("tasks", state="waiting") == 7, 60)  # the collection still holds them
        assert money.set_budget("default", "collection:books", hard=1).resumed == 7
        engine.db.close()
    eventually(lambda: published(arena) == 12, 60)
    assert (meter.totals().charges, meter.totals().excess) == (12, 0)
    assert [(each.spent, each.reserved) for each in budgets.of_tenant(arena.db, "default")] == [
        (12 * PRICE, 0)
    ] * 2


def test_the_list_of_points_is_complete(arena, meter):
    """Whoever spends until the money is gone passes exactly the points at which the tests below kill."""
    shelve(arena, 2, cap=1)
    passed, mine = set(), part(arena, meter, terms=actor.LONG)
    with closing(actor.client(mine)) as provider, faults.armed(passed.add):
        survivor = actor.engine(mine, provider)
        survivor.work_off()
        survivor.sweep()
        survivor.db.close()
    assert passed == {*POINTS, *SWEEPING}


@pytest.mark.chaos
@pytest.mark.timeout(300)  # eight processes are started at a time, however busy the machine is
@pytest.mark.parametrize("where", ["paying", "anywhere"])
def test_eight_processes_die_each_at_a_point_of_its_own_and_the_cap_holds(arena, meter, where):
    """The cap is raised little by little until all are dead; then one goes on: each document is paid once."""
    points = PAYING if where == "paying" else POINTS + SWEEPING
    points = points + points[: -len(points) % CROWD]
    shelf, broken = Shelf(arena), []
    for first in range(0, len(points), CROWD):
        crowd = [
            actor.Process(
                part(arena, meter, at=point, owner=f"{point} {first + position}", tireless=True)
            ).ready()
            for position, point in enumerate(points[first : first + CROWD])
        ]
        for process in crowd:
            process.go()
        while any(process.alive for process in crowd):
            shelf.grow()
            broken += [each for each in budgets.of_tenant(arena.db, "default") if each.used > each.hard_limit]
        for process in crowd:
            process.dies()
    assert broken == []
    bury(arena)
    mine = part(arena, meter)
    with closing(actor.client(mine)) as provider:
        survivor = actor.engine(mine, provider)
        for scope in SCOPES:
            Billing(survivor).set_budget("default", scope, hard=1)
        survivor.run_until_idle()
        survivor.db.close()
    assert published(arena) == arena.count("runs") == shelf.documents
    assert (meter.totals().charges, meter.totals().excess) == (shelf.documents, 0)
    assert [(each.spent, each.reserved) for each in budgets.of_tenant(arena.db, "default")] == [
        (shelf.documents * PRICE, 0)
    ] * 2


class Shelf:
    """Documents of one paid word each, and two budgets for about half of them."""

    def __init__(self, arena):
        self.arena, self.asked, self.documents = arena, 0, 0
        self.grow()

    def grow(self):
        """When nothing is queued there is a little more to do, and a little less more to spend.

        Whoever always finds something due would never come to sweep.
        """
        self.arena.db.pause(0.05)
        if self.arena.count("tasks", state="queued"):
            return
        for scope in SCOPES:
            budgets.set_budget(self.arena.db, "default", scope, hard=(self.asked // 2 + 2) * PRICE)
            budgets.resume(self.arena.db, "default", scope)
        for number in range(self.asked, self.asked + 4):
            about = {"kind": "batch", "subject": f"document:{number}", "pipeline": "batch@1"}
            answer = self.arena.ask(**about, options={"words": [f"w{number}"]}, collection="books")
            self.documents += answer.created  # what comes when all is spent is refused
        self.asked += 4


def bury(arena):
    """The leases of the dead have run out."""
    for task in arena.rows("tasks", state="running"):
        arena.set("tasks", {"lease_until": 1.0}, id=task.id)
    arena.set("duties", {"next_at": 0.0})


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
def test_a_death_at_any_point_neither_breaks_the_cap_nor_loses_money(pg_arena, meter, point):
    """Three documents, money for two; one dies, another goes on: two are paid, once, and the third waits."""
    arena = pg_arena
    shelve(arena, 3, cap=2)
    victim = actor.Process(part(arena, meter, at=point)).go()
    victim.expect("at")
    victim.dies()
    assert holds(arena, 2)
    for task in arena.rows("tasks", state="running"):
        arena.set("tasks", {"lease_until": 1.0}, id=task.id)
    mine = part(arena, meter)
    with closing(actor.client(mine)) as provider:
        survivor = actor.engine(mine, provider)

        def settled():
            survivor.sweep()
            survivor.work_off()
            assert holds(arena, 2)
            return published(arena) == 2 and arena.count("tasks", state="waiting") == 1

        eventually(settled, 60)
        assert (meter.totals().charges, meter.totals().excess) == (2, 0)
        for scope in SCOPES:
            Billing(survivor).set_budget("default", scope, hard=1)
        survivor.work_off()
        survivor.db.close()
    assert (published(arena), meter.totals().charges) == (3, 3)
    assert [(each.spent, each.reserved) for each in budgets.of_tenant(arena.db, "default")] == [
        (3 * PRICE, 0)
    ] * 2
