"""What tests, benchmarks and chaos runs need that is not a test: nothing in the product imports it.

`Meter` is public: a server that stands in for a paid provider and counts what it charged.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.meter import Meter

__all__ = ["Meter"]

if not TYPE_CHECKING:  # or a type checker would believe that every name exists

    def __getattr__(name: str) -> object:
        # Late, so that `python -m holdfast.testing.meter` loads the module once.
        if name == "Meter":
            from holdfast.testing.meter import Meter  # noqa: PLC0415

            return Meter
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
