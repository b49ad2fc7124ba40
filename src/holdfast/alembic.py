"""For the `env.py` of an application whose database also has the tables of Holdfast.

from holdfast.alembic import include_name

context.configure(connection=connection, target_metadata=target_metadata, include_name=include_name)
"""

from collections.abc import Mapping

PREFIX = "holdfast_"


def include_name(name: str | None, type_: str, parent_names: Mapping[str, str | None]) -> bool:  # noqa: ARG001
    """False for the tables of Holdfast, so that autogenerate does not propose to drop them.

    The parameters are those of Alembic's `include_name`. Beside a hook of your own, both must be true.
    """
    return type_ != "table" or name is None or not name.startswith(PREFIX)
