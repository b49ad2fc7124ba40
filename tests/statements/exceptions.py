"""Statements that may read more than they answer, by their caller, each with its reason.

A caller is a module and a function. Exports, and what is added up or loaded whole, belong here. An exception
of a caller that asks for nothing any more fails the whole run, as a statement without one does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.statements.explaining import Fault


@dataclass(frozen=True)
class Allowed:
    """Why a statement may read more, and who asks how often.

    `reads` are the tables that it may read from end to end, `times` how many times the usual cost it may
    have; one that reads a table whole costs what that takes. `elsewhere`: it is sent to a database that is
    not ours, and cannot be explained here. With `dialect` it holds on that database alone.
    """

    reason: str
    asked: str
    reads: tuple[str, ...] = ()
    times: float | None = None
    elsewhere: bool = False
    dialect: str = ""

    def covers(self, faults: Sequence[Fault], dialect: str = "") -> bool:
        """True when it excuses every one of them, on this database."""
        if self.dialect and dialect != self.dialect:
            return False
        return self.elsewhere or all(self._covers(fault) for fault in faults)

    def _covers(self, fault: Fault) -> bool:
        if fault.table is not None:
            return fault.table in self.reads
        return fault.times is not None and (bool(self.reads) or fault.times <= (self.times or 1.0))


_PERSON = "a person, by looking at a page or with a command"

EXCEPTIONS: dict[str, Allowed] = {
    # What is added up.
    "billing.bill": Allowed(
        "adds up all that a tenant was charged and saved in a span of time, by what the person chooses",
        _PERSON,
        ("charges", "orders", "tasks", "gateway_usage", "runs", "heads", "journal"),
    ),
    "budgets._counted": Allowed(
        "adds up, once, what the scope of a new budget was charged in its period",
        "a person who sets a limit where there was none",
        ("charges",),
    ),
    "follow_ups.actions_of": Allowed(
        "counts the follow-ups of a collection's actions by status",
        _PERSON,
        ("follow_ups", "runs", "deliveries", "heads"),
    ),
    "document_lists.counts": Allowed(
        "counts the documents of each collection by status, which is that of another table",
        _PERSON,
        ("documents", "heads"),
    ),
    "estimates.ready": Allowed(
        "counts the documents of a collection that would be asked for again",
        "a person who wants the price of a change before it is made",
        ("heads",),
    ),
    "estimates.size_of": Allowed(
        "adds up the chunks of a collection that a job would read",
        "a person who wants the price of a job before it is started",
        ("documents",),
    ),
    "bulk_updates.left": Allowed(
        "counts the documents of a collection that a round has still to see to",
        "a person, while a collection is being changed or deleted",
        ("documents", "heads"),
    ),
    "other_models.count": Allowed(
        "counts the documents of a collection that another model has embedded, a thousand at most",
        "a search, when the collection has changed, and then at most every few seconds in a process",
        ("heads", "runs"),
    ),
    "vector_tables.chunks_of": Allowed(
        "adds up the chunks of one collection to see whether it has become large",
        "the filler of pgvector, for a collection that was published to since its last look",
        ("documents",),
    ),
    # What is loaded, listed or changed whole.
    "search_reads.view": Allowed(
        "loads which documents of a collection are visible, for its matrix",
        "the first search of a process, and one after each publication",
        ("heads",),
    ),
    "search_reads.stamp_and_view": Allowed(
        "as search_reads.view, with the stamp", "as search_reads.view", ("heads",)
    ),
    "filtered_heads.passing": Allowed(
        "lists every document of a collection that passes a filter, in one row: with `not`, nearly all of it",
        "a search with a filter",
        ("documents", "heads", "document_values"),
    ),
    "title_reads.titles": Allowed(
        "loads the titles of a collection, at first all and then those that changed",
        "the first search of a process, and one after each publication",
        ("documents",),
    ),
    "job_sources.ready": Allowed(
        "lists every ready document of a collection, which a job is to read",
        "the plan of a job on a whole collection, once",
        ("documents", "heads"),
    ),
    "follow_ups._follow_ups": Allowed(
        "sorts all follow-ups of an action by time to show the latest",
        _PERSON,
        ("follow_ups", "runs", "deliveries", "heads", "tasks"),
    ),
    "keys.every": Allowed("lists every API key", "a person, with `holdfast keys list`", ("api_keys",)),
    "document_lists.page": Allowed(
        "sorts a collection by what is no column of its documents, or looks for a part of a title",
        "a person who chose another order than that of ids, or typed into the search field of the list",
        ("documents", "heads", "charges"),
    ),
    "events.adopt": Allowed(
        "numbers the whole journal anew",
        "the first start after a database was restored on another server",
        ("journal",),
    ),
    # What does much at once, and no more than that.
    "integrity.look": Allowed(
        "looks for the chunks and vectors of 200 documents; PostgreSQL prices each of these looks",
        "a duty of the sweep, at each of its turns",
        times=20,
        dialect="postgresql",
    ),
    "search_reads.candidates": Allowed(
        "takes up to a thousand chunks that have a word; PostgreSQL expects more of them than there are",
        "a search",
        times=4,
    ),
    "delivery_attempts.page": Allowed(
        "passes over deliveries that were sent again since, to fill a page of those in one state",
        _PERSON,
        times=3,
    ),
    "job_sources.coming": Allowed(
        "looks through the runs that are queued or running for one of the collection",
        "a job that waits for its documents, while it waits",
        times=3,
    ),
    "dashboard.refusals": Allowed(
        "looks through the latest 20,000 entries of the journal for those that refuse something",
        _PERSON,
        times=4,
        dialect="sqlite",
    ),
    "guarded.DemoInstall.rows": Allowed(
        "reads every row of a table, to show that a thawed worker changed none",
        "`holdfast demo`, in a database of its own with some dozens of rows",
        ("chunks", "heads", "runs", "tasks"),
    ),
    "guarded.DemoInstall.refusals": Allowed(
        "counts the writes that were refused", "as guarded.DemoInstall.rows", ("journal",)
    ),
    "execute.Executor._finish": Allowed(
        "what a kind of the user's own publishes into its own tables",
        "the kind of the tutorial",
        elsewhere=True,
    ),
    "imports.read_documents": Allowed(
        "reads the tables of another application",
        "a person, once, with `holdfast import-documents`",
        elsewhere=True,
    ),
}
