"""Statements that may read more than they answer, by their caller, each with its reason.

Exports, and what is added up or loaded whole, belong here. `times` is how much more than usual such a
statement may cost; without it, it may read whole tables.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowed:
    """Why a statement may read more, and how many times the usual cost."""

    reason: str
    times: float | None = None


EXCEPTIONS: dict[str, Allowed] = {
    "store/access/keys.py:any_made": Allowed("asks whether there is any key at all: the first row answers"),
    "store/library/integrity.py:look.<lambda>": Allowed(
        "looks through the chunks of 200 documents at each turn", 10
    ),
    "store/views/tallies.py:since.body": Allowed(
        "counts what is new since the last look, at most 50,000 rows"
    ),
    "store/library/documents.py:page": Allowed("a page of up to 500 documents with their heads", 3),
    "store/search/vector_tables.py:are_wanted.<lambda>": Allowed(
        "asks whether any collection has become large, by counting the documents of each until one has"
    ),
    "store/money/billing.py:bill.body": Allowed("adds up everything that a tenant was ever charged"),
    "store/money/budgets.py:set_budget.body": Allowed(
        "adds up, once, what the scope of a new budget was charged"
    ),
    "store/follow_ups/follow_ups.py:actions_of.<lambda>": Allowed(
        "counts every follow-up of a collection, by status"
    ),
    # The grown journal lies in the future, so that a page has to pass over all of it.
    "store/views/events.py:page": Allowed("a page of one collection passes over the tenant's other entries"),
    "store/views/events.py:of_tenants": Allowed("passes over entries that are too young to be told", 40),
}
