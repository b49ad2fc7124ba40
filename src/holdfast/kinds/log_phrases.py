"""How the lines of a run's log count things."""


def many(number: int, word: str) -> str:
    """`1 page`, `2 pages`, `1,000 pages`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
