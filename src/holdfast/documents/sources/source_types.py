"""The types of sources, and how each is opened from its options."""

from collections.abc import Callable, Mapping

from holdfast.documents.sources import feed, folder, git, s3, sitemap, urls
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.source import Source, SourceError, SourceLimits, SourceSpec
from holdfast.extras import MissingExtraError

_Opener = Callable[[SourceOptions, SourceLimits], Source]
_OPENERS: Mapping[str, _Opener] = {
    "feed": feed.from_options,
    "folder": folder.from_options,
    "git": git.from_options,
    "s3": s3.from_options,
    "sitemap": sitemap.from_options,
    "urls": urls.from_options,
}
TYPES = tuple(_OPENERS)


def open_source(spec: SourceSpec, limits: SourceLimits) -> Source:
    """The source; SourceError `bad_source`, which names the option, if it is not described as it should be.

    Nothing is connected to before the source is looked at.
    """
    opener = _OPENERS.get(spec.type)
    if opener is None:
        raise SourceError(
            "bad_source", f"there is no source of type {spec.type!r:.50}; the types are {', '.join(TYPES)}"
        )
    try:
        return opener(SourceOptions(spec.type, spec.options), limits)
    except MissingExtraError as error:
        raise SourceError("bad_source", error.message) from error
