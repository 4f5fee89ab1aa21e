"""The media of a record: what its keys name, where the text wants them, and whether the files are there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from evr1_core.api.samples import Kind, Media
from evr1_core.config.schema import KeysConfig
from evr1_core.data.fields import BadRowError, shown

PLACEHOLDER = re.compile(r"<(image|video)>")
KINDS: tuple[Kind, ...] = get_args(Kind)
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")

LONGEST = 1e9  # seconds; infinity and not-a-number are no times

ByKind = Mapping[Kind, Sequence[Media]]


def read_media(row: Mapping[str, Any], keys: KeysConfig) -> ByKind:
    """The media of a row by kind. Raises BadRowError, also when the row says it is of another kind."""
    media: dict[Kind, list[Media]] = {
        "image": [_medium(each, "image", keys.images) for each in _listed(row, keys.images)],
        "video": [_medium(each, "video", keys.videos) for each in _listed(row, keys.videos)],
    }
    _check_kind(row.get(keys.kind), media, keys)
    return media


def with_placeholders(text: str, media: ByKind) -> str:
    """The text with a placeholder for every medium: those it has, or all images and then all videos before it."""
    found = PLACEHOLDER.findall(text)
    if not found:
        return "".join(f"<{kind}>" * len(media[kind]) for kind in KINDS) + text
    for kind in KINDS:
        wanted, given = found.count(kind), len(media[kind])
        if wanted != given:
            raise BadRowError(f"the text has {wanted} <{kind}> and the record has {given} {kind}{'' if given == 1 else 's'}")
    return text


def in_order(problem: str, media: ByKind) -> tuple[Media, ...]:
    """The media in the order of the placeholders."""
    waiting = {kind: iter(own) for kind, own in media.items()}
    return tuple(next(waiting[kind]) for kind in PLACEHOLDER.findall(problem))


class FileCheck:
    """Says why a media file cannot be read; each path is looked at once. Whether it decodes is the cache's business."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def problem(self, path: Path) -> str | None:
        """One line, or None."""
        key = str(path)
        if key not in self._known:
            try:
                self._known[key] = _problem(path)
            except (OSError, ValueError) as error:  # no right to look, a name too long or with a NUL in it
                self._known[key] = f"{shown(key)} cannot be looked at: {getattr(error, 'strerror', None) or error}"
        return self._known[key]


def _problem(path: Path) -> str | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return f"{path} is a link to nothing" if path.is_symlink() else f"there is no file {path}"
    if not path.is_file():
        return f"{path} is a folder" if path.is_dir() else f"{path} is no file"
    if size == 0:
        return f"{path} is empty"
    return None if os.access(path, os.R_OK) else f"{path} may not be read"


def _check_kind(value: Any, media: ByKind, keys: KeysConfig) -> None:
    if value is None or value == "":
        return
    said = value.strip().lower() if isinstance(value, str) else ""
    if said not in ("text", *KINDS):
        raise BadRowError(f"{keys.kind}: must be text, image or video; is {shown(value)}")
    named = {"image": keys.images, "video": keys.videos}
    for kind in KINDS:
        if said == kind and not media[kind]:
            raise BadRowError(f"{keys.kind}: says {said}, and {named[kind]} is empty")
        if media[kind] and (said == "text" or (said, kind) == ("image", "video")):  # a video record may have images too
            raise BadRowError(f"{keys.kind}: says {said}, and {named[kind]} is not empty")


def _listed(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _medium(value: Any, kind: Kind, key: str) -> Media:
    span = None
    if isinstance(value, Mapping):
        value, span = _with_span(value, kind, key)
    if isinstance(value, list):
        raise BadRowError(f"{key}: holds a list of frames; give the video file, since the times of loose frames are not known")
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(f"{key}: must hold paths; holds {shown(value)}")
    if kind == "video" and value.lower().endswith(PICTURES):
        raise BadRowError(f"{key}: {shown(value)} is a picture; give the video file, or name pictures under images")
    return Media(kind=kind, path=value, span=span)


def _with_span(value: Mapping[str, Any], kind: Kind, key: str) -> tuple[Any, tuple[float, float] | None]:
    """The path and span of a medium given as an object. Keys with null, as Parquet fills them in, count as absent."""
    given = {name: each for name, each in value.items() if each is not None}
    known = {"path", kind} | ({"start", "end"} if kind == "video" else set())
    if unknown := given.keys() - known:
        raise BadRowError(f"{key}: unknown key {shown(min(unknown))} of {kind}; known: {', '.join(sorted(known))}")
    if len(given.keys() & {"path", kind}) != 1:
        raise BadRowError(f"{key}: must name a file by `path` or by `{kind}`; is {shown(dict(value))}")
    path = given.get("path", given.get(kind))
    if not given.keys() & {"start", "end"}:
        return path, None
    start: Any = given.get("start", 0)
    end: Any = given.get("end")
    for each in (start, end):
        if isinstance(each, bool) or not isinstance(each, int | float) or not abs(each) < LONGEST:
            raise BadRowError(f"{key}: start and end must be seconds; one is {shown(each)}")
    if not 0 <= start < end:
        raise BadRowError(f"{key}: must have 0 <= start < end; they are {shown(start)} and {shown(end)}")
    return path, (float(start), float(end))
