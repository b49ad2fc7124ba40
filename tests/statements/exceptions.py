"""Statements that may read more than a hundredth of a table, by their caller, each with its reason."""

EXCEPTIONS: dict[str, str] = {}
