"""The tables of the first release."""

from holdfast.store.migrations.baseline import (
    access,
    beyond_models,
    follow_ups,
    jobs,
    journal,
    library,
    money,
    operations,
    protocol,
    search,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for room in (protocol, journal, search, money, library, follow_ups, jobs, access, operations):
        room.create()
    beyond_models.create()
