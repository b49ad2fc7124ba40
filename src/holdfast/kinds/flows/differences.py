"""What two versions of a flow have in common, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.kinds.flows.steps import Flow, Step

SAME, CHANGED, NEW, GONE, AGAIN = "same", "changed", "new", "removed", "reads changed"


@dataclass(frozen=True, slots=True)
class StepChange:
    """What becomes of a step: `change` is one of the words above, `details` what is different."""

    kind: str
    name: str
    change: str
    details: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The change in words."""
        what = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        more = f": {'; '.join(self.details)}" if self.details else ""
        return f"{what}: {self.change}{more}"


def between(old: Flow | None, new: Flow) -> list[StepChange]:
    """What becomes of every step of both, in the order of the new one; those that went come last.

    A step that is the same, but reads a field that another makes differently, is carried out again where
    that field has another value.
    """
    before = {} if old is None else _by_name(old.steps)
    touched: set[str] = set()
    changes = []
    for key, step in _by_name(new.steps).items():
        other = before.pop(key, None)
        details = () if other is None else _details(other.described(), step.described())
        word = NEW if other is None else CHANGED if details else SAME
        read = sorted(touched & {name.partition(".")[0] for name in _reads(step)})
        if word == SAME and read:
            word, details = AGAIN, (f"reads {', '.join(read)}",)
        if word != SAME:
            touched.add("text" if step.kind in {"parse", "clean", "split"} else step.name)
        changes.append(StepChange(step.kind, step.name, word, details))
    return [*changes, *(StepChange(each.kind, each.name, GONE) for each in before.values())]


def _reads(step: Step) -> set[str]:
    if step.kind == "publish":
        return {*step.params["search"], *step.params["fields"]}
    return {*step.reads, *(step.when.reads if step.when is not None else ())}


def _by_name(steps: Sequence[Step]) -> dict[tuple[str, str, int], Step]:
    named: dict[tuple[str, str, int], Step] = {}
    for step in steps:
        number = sum(key[:2] == (step.kind, step.name) for key in named)
        named[step.kind, step.name, number] = step
    return named


def _details(old: Any, new: Any, path: str = "") -> tuple[str, ...]:
    """The parameters that differ, by their paths."""
    if isinstance(old, dict) and isinstance(new, dict):
        return tuple(
            line
            for name in sorted({*old, *new})
            for line in _details(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
        )
    return () if old == new else (f"{path.partition('.')[2] or path} was {_short(old)}, is {_short(new)}",)


def _short(value: Any) -> str:
    return "not set" if value is None else f"{value!r:.80}"
