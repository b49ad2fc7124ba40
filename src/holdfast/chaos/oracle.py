"""What must be true after every scenario, judged from outside: by the meter's book and by what is on record.

Each function answers the breaches of one promise, as sentences; an empty list means that it was kept. None
of them asks a worker anything.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.chaos import kinds
from holdfast.chaos.evidence import Evidence, Row
from holdfast.core.records import Ask, RequestResult
from holdfast.core.states import ENDED, OPEN, UNSETTLED, Status
from holdfast.testing import meter_answers

DIMENSIONS = 32
RECOVERED_WITHIN = 15.0
# The product's bound of 64, and what workers that stop hand back on top of it.
MOST_OUTSTANDING = 64 + 16


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of the scenario, what was answered, and how its run must have ended, if it made one."""

    ask: Ask
    answer: RequestResult
    ends: str = Status.SUCCESS
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """A death: when (by the wall, and since boot), whose, which tasks it held at which epoch, and which of
    its exchanges the meter had open just before.
    """

    at: float
    since_boot: float
    worker: str
    held: Mapping[int, int] = field(default_factory=dict)
    open: Collection[int] = ()


def lost(evidence: Evidence, requests: Iterable[SentRequest]) -> list[str]:
    """Accepted requests that have no ended run (G4)."""
    status = {row["id"]: row["status"] for row in evidence.runs}
    ended = {str(each) for each in ENDED}
    return [
        f"lost: {each.ask.subject} generation {each.answer.generation} is {status.get(each.answer.run_id)}"
        for each in requests
        if each.answer.created and status.get(each.answer.run_id or "") not in ended
    ]


def wrong(evidence: Evidence, requests: Iterable[SentRequest]) -> list[str]:
    """Runs that ended otherwise than they must; readers who see anything but one whole generation (G3)."""
    breaches = []
    runs = {row["id"]: row for row in evidence.runs}
    latest: dict[int, SentRequest] = {}
    for each in requests:
        if not each.answer.created:
            continue
        run = runs.get(each.answer.run_id or "")
        if run is None or run["status"] not in {str(status) for status in ENDED}:
            continue  # `lost` has it
        if (run["status"], run["error_code"]) != (each.ends, each.error):
            breaches.append(
                f"wrong: {each.ask.subject} generation {run['generation']} ended {run['status']} "
                f"({run['error_code']}: {run['error_message']}), not {each.ends} ({each.error})"
            )
        if run["status"] == Status.SUCCESS and each.ask.kind == "paper":
            before = latest.get(run["head_id"])
            if before is None or before.answer.generation < each.answer.generation:
                latest[run["head_id"]] = each
    for head_id, each in latest.items():
        breaches += _misread(evidence, head_id, each)
    return breaches + _mixed(evidence)


def _misread(evidence: Evidence, head_id: int, each: SentRequest) -> list[str]:
    subject = each.ask.subject
    if head_id not in evidence.visible:
        return [f"wrong: nothing of {subject} is visible"]
    generation, texts = evidence.visible[head_id]
    breaches = []
    if generation != each.answer.generation:
        breaches.append(f"wrong: {subject} shows generation {generation}, not {each.answer.generation}")
    demanded = [
        kinds.chunk_text(text, meter_answers.vector(kinds.MODEL, text, DIMENSIONS))
        for text in kinds.all_texts(each.ask.content, each.ask.options)
    ]
    if list(texts) != demanded:
        spare, short = Counter(texts) - Counter(demanded), Counter(demanded) - Counter(texts)
        breaches.append(
            f"wrong: {subject} shows {len(texts)} chunks of {len(demanded)}; "
            f"too many: {list(spare)[:2]}, missing: {list(short)[:2]}"
        )
    return breaches


def _mixed(evidence: Evidence) -> list[str]:
    """Slices of a visible generation whose chunks come from more than one holder (G2)."""
    epochs: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for row in evidence.chunks:
        epochs[row["head_id"], row["generation"], row["slice"]].add(row["epoch"])
    return [
        f"wrong: slice {part} of head {head} generation {generation} was written under epochs {sorted(seen)}"
        for (head, generation, part), seen in epochs.items()
        if len(seen) > 1 and head in evidence.visible and evidence.visible[head][0] == generation
    ]


def charges(log: Iterable[Row]) -> Counter[tuple[str, str, str]]:
    """How often each input was charged, by the book."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for entry in log:
        if entry["charged"]:
            counted.update((entry["endpoint"], entry["model"], text) for text in entry["inputs"])
    return counted


def overcharged(evidence: Evidence, *, exact: bool) -> list[str]:
    """Inputs charged more often than G5 allows, and charges that the bill does not show.

    `exact`: the provider honours keys, or nothing was in flight when anything happened; then each input is
    charged once. Otherwise once more for each time that an order which carried it was in doubt.
    """
    by_key = {row["idempotency_key"]: row for row in evidence.orders}
    carriers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    taken: Counter[str] = Counter()
    breaches = []
    for entry in evidence.log:
        if not entry["charged"]:
            continue
        key = entry["idempotency_key"]
        if key not in by_key:
            breaches.append(f"overcharged: the ledger knows nothing of the charged order {key}")
            continue
        taken[key] += 1
        for text in entry["inputs"]:
            carriers[entry["endpoint"], entry["model"], text].add(key)
    for paid, times in charges(evidence.log).items():
        allowed = 1 if exact else 1 + sum(by_key[key]["doubts"] for key in carriers[paid])
        if times > allowed:
            breaches.append(f"overcharged: {paid[2]!r} was charged {times} times, {allowed} allowed")
    return breaches + _unbilled(evidence, taken, by_key)


def _unbilled(evidence: Evidence, taken: Mapping[str, int], by_key: Mapping[str, Row]) -> list[str]:
    shown: Counter[str] = Counter()
    for row in evidence.charges:
        if row["sort"] in {"paid", "second"} or not row["cleared"]:
            shown[row["order_id"]] += 1
    return [
        f"unbilled: order {order} was charged {times} times, the bill shows {shown[order]}"
        for key, times in taken.items()
        if times > shown[order := by_key[key]["id"]]
    ]


def unproven(log: Sequence[Row], kills: Iterable[Kill]) -> list[str]:
    """Kills that met no open order of the killed worker: they prove nothing about money."""
    return [
        f"unproven: no order of {kill.worker} was open when it was killed"
        for kill in kills
        if not any(entry["id"] in kill.open for entry in open_at(log, kill.since_boot))
    ]


def open_at(log: Iterable[Row], moment: float) -> list[Row]:
    """The orders that had arrived at that moment and had no answer yet."""
    return [
        entry
        for entry in log
        if entry["inputs"]
        and entry["arrived_at"] <= moment
        and (entry["replied_at"] is None or entry["replied_at"] >= moment)
    ]


def recoveries(evidence: Evidence, kills: Iterable[Kill]) -> tuple[list[float], list[str]]:
    """Seconds from each kill to the next claim of each task it held, and tasks never claimed again (G7)."""
    seconds, never = [], []
    given_up = {Status.CANCELLED, Status.SUPERSEDED}
    live = {row["id"] for row in evidence.runs if row["status"] not in given_up}
    runs_of = {row["id"]: row["run_id"] for row in evidence.tasks}
    for kill in kills:
        for task_id, epoch in kill.held.items():
            claims = [row for row in evidence.noted("claim", task_id=task_id) if row["epoch"] > epoch]
            if claims:
                seconds.append(min(row["at"] for row in claims) - kill.at)
            elif runs_of.get(task_id) in live and not evidence.noted("fail", task_id=task_id):
                never.append(f"never recovered: task {task_id}, held by {kill.worker} when it was killed")
    return seconds, never


def late(seconds: Iterable[float], within: float) -> list[str]:
    """Recoveries that took longer than promised."""
    return [f"late: a task was claimed again only {each:.1f} s after" for each in seconds if each > within]


def unexplained(evidence: Evidence, requests: Iterable[SentRequest]) -> list[str]:
    """Refused requests and changes of holder that the journal does not give a reason for (G6)."""
    on_record = Counter((row["head_id"], row["reason"]) for row in evidence.noted("request"))
    refused = Counter(
        (each.answer.head_id, f"{each.answer.disposition}:{each.answer.reason}")
        for each in requests
        if not each.answer.created
    )
    breaches = [
        f"unexplained: {count} requests of head {head} were answered {reason!r}, the journal tells of "
        f"{on_record[head, reason]}"
        for (head, reason), count in refused.items()
        if on_record[head, reason] != count
    ]
    by_task: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.journal:
        if row["task_id"] is not None:
            by_task[row["task_id"]].append(row)
    for task_id, rows in by_task.items():
        breaches += _unexplained_claims(task_id, rows)
    return breaches


_LETS_GO = {"expire", "release", "put_back"}


def _unexplained_claims(task_id: int, rows: Iterable[Row]) -> list[str]:
    breaches, held = [], None
    for row in sorted(rows, key=lambda each: each["id"]):
        if row["verb"] in _LETS_GO:
            held = None
        elif row["verb"] == "claim":
            if held is not None and row["reason"] != "over_expired":
                breaches.append(
                    f"unexplained: task {task_id} went from {held} to {row['actor']} without a word why"
                )
            held = row["actor"]
    return breaches


def left_over(evidence: Evidence, outstanding: Mapping[str, int]) -> list[str]:
    """Leases, open tasks and unheard orders of work that has ended, and wake-ups beyond their bound."""
    ended = {row["id"]: row["status"] for row in evidence.runs if row["status"] in {str(s) for s in ENDED}}
    open_states = {str(state) for state in OPEN}
    unsettled = {str(state) for state in UNSETTLED}
    breaches = [
        f"left over: task {row['id']} of an ended run is {row['state']}, held by {row['owner']}"
        for row in evidence.tasks
        if row["run_id"] in ended and row["state"] in open_states
    ]
    # An order in doubt of a run that was given up is resent by nobody: it stays in the bill, as it should.
    breaches += [
        f"left over: order {row['id']} of a successful run is {row['state']} ({row['reason']})"
        for row in evidence.orders
        if ended.get(row["run_id"]) == Status.SUCCESS and row["state"] in unsettled
    ]
    return breaches + [
        f"left over: {count} wake-ups in {queue}, at most {MOST_OUTSTANDING} may wait"
        for queue, count in outstanding.items()
        if count > MOST_OUTSTANDING
    ]
