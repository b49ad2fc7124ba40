"""URLs of servers: which schemes a setting takes."""

from pydantic import SecretStr


def checked(url: SecretStr, schemes: tuple[str, ...]) -> SecretStr:
    """The URL, which has one of these schemes; ValueError says which ones there are."""
    if url.get_secret_value().partition("://")[0] not in schemes:
        raise ValueError(f"should start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return url
