"""Finds the samples whose media cannot be used, before a run, and leaves them out where the settings allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from attrs import frozen

from evr1_core.api import CacheError, DataError, Media, MediaError, Sample
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import DataConfig


@frozen(kw_only=True)
class BadMedia:
    """A sample and what is wrong with one of its files; ``kind`` is the error's short word for counting."""

    uid: str
    origin: str
    path: str
    kind: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.origin}: " if self.origin else ""
        return f"{place}record {self.uid!r}: {self.path}: {self.reason}"


def find_bad(samples: Sequence[Sample], cache: FrameCache, *, threads: int = 1) -> list[BadMedia]:
    """The samples with a file that cannot be used, in order, one entry a file. Each file is looked at once; those that are in the
    cache could be decoded. Raises CacheError when ``cache.mode: only`` keeps files without an entry from being decoded."""
    media = list(dict.fromkeys(media for sample in samples for media in sample.media))
    _all_stored(media, cache)
    with ThreadPoolExecutor(threads) as pool:
        errors = dict(zip(media, pool.map(lambda each: _error(each, cache), media), strict=True))
    return [
        BadMedia(uid=sample.uid, origin=sample.origin, path=error.path, kind=error.kind, reason=error.reason)
        for sample in samples
        for each in dict.fromkeys(sample.media)
        if (error := errors[each]) is not None
    ]


def without_bad(samples: Sequence[Sample], bad: Sequence[BadMedia], config: DataConfig) -> list[Sample]:
    """The samples that can be used. Raises DataError with all that cannot, when there are any (``data.on_bad_media: fail``) or more
    than ``data.max_bad_media`` of all (``skip``)."""
    left_out = {each.uid for each in bad}
    share = len(left_out) / max(len(samples), 1)
    if left_out and config.on_bad_media == "fail":
        raise DataError([*map(str, bad), f"{_counted(bad)}; leave them out with data.on_bad_media: skip"])
    if share > config.max_bad_media:
        limit = f"data.max_bad_media allows {config.max_bad_media:.2%}"
        raise DataError([*map(str, bad), f"{_counted(bad)}: {share:.2%} of the records, and {limit}"])
    return [sample for sample in samples if sample.uid not in left_out]


def bad_metrics(samples: Iterable[Sample], bad: Sequence[BadMedia]) -> dict[str, float]:
    """Counts for the trackers: records left out, in all and by kind, and their share."""
    uids = {each.uid for each in bad}
    counts = {f"data/bad_media/{kind}": float(count) for kind, count in Counter(each.kind for each in bad).items()}
    return {"data/bad_media": float(len(uids)), "data/bad_media_share": len(uids) / max(len(list(samples)), 1), **counts}


def _all_stored(media: Iterable[Media], cache: FrameCache) -> None:
    lacking = []
    for each in media:
        with suppress(MediaError):  # said later, with the record
            if cache.lacks(each):
                lacking.append(each.path)
    if lacking:
        others = f" and {len(lacking) - 1} more files have" if len(lacking) > 1 else " has"
        raise CacheError(f"{lacking[0]}{others} no entry in {cache.folder}; run `evr1 cache build`, or set cache.mode: prefer")


def _counted(bad: Sequence[BadMedia]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in bad).most_common())
    return f"{len({each.uid for each in bad})} records cannot be used ({kinds})"


def _error(media: Media, cache: FrameCache) -> MediaError | None:
    try:
        if not cache.holds(media):
            cache.plan(media)
    except MediaError as error:
        return error
    return None
