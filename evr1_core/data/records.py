"""Records as users have them, checked and made into samples; bad rows are all listed and nothing is returned."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from evr1_core.api.errors import DataError
from evr1_core.api.samples import Kind, Media, Sample
from evr1_core.config.schema import DataConfig, KeysConfig
from evr1_core.data.files import read_rows
from evr1_core.data.tasks import canonical

PLACEHOLDER = re.compile(r"<(image|video)>")


class BadRowError(Exception):
    """A reason why one row cannot be used."""


def read_samples(files: Sequence[str], config: DataConfig, *, split: str = "") -> list[Sample]:
    """The samples of data files, in order. Raises DataError with the place and reason of every row that cannot be used."""
    problems: list[str] = []
    samples: list[Sample] = []
    places: dict[str, str] = {}
    checked: dict[str, str | None] = {}
    for file in files:
        path = Path(file)
        try:
            rows = read_rows(path)
        except DataError as error:
            problems += error.problems
            continue
        root = Path(config.media_root) if config.media_root else path.parent
        for number, place, row in rows:
            try:
                sample = _sample(row, config.keys, f"{path.stem}:{number}", place)
                missing = [reason for media in sample.media if (reason := _unusable(root, media, checked))]
                if sample.uid in places:
                    missing.append(f"uid {sample.uid!r} stands at {places[sample.uid]} too")
            except BadRowError as error:
                problems.append(f"{place}: {error}")
                continue
            places.setdefault(sample.uid, place)
            problems += [f"{place}: {reason}" for reason in missing]
            samples.append(_rooted(sample, root))
    if problems:
        raise DataError(problems)
    return samples


def _sample(row: Any, keys: KeysConfig, uid: str, place: str) -> Sample:
    if not isinstance(row, Mapping):
        raise BadRowError(f"a record must be an object; is {_kind(row)}")
    media = _media(row, keys)
    problem = _problem(_text(row, keys.problem), media)
    return Sample(
        uid=_uid(row, keys, uid),
        task=canonical(_text(row, keys.task)),
        problem=problem,
        answer=_answer(row, keys),
        options=_options(row, keys),
        media=_in_order(problem, media),
        source=_optional_text(row, keys.source),
        offline=_offline(row, keys),
        origin=place,
        extra={key: value for key, value in row.items() if key not in _known(keys)},
    )


def _uid(row: Mapping[str, Any], keys: KeysConfig, default: str) -> str:
    if not keys.uid:
        return default
    value = row.get(keys.uid)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadRowError(f"{keys.uid}: must be text or a whole number, since data.keys.uid names it; is {_shown(value)}")
    return str(value)


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(f"{key}: must be text that is not blank; is {_shown(value)}")
    return value


def _optional_text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRowError(f"{key}: must be text; is {_shown(value)}")
    return value


def _answer(row: Mapping[str, Any], keys: KeysConfig) -> str:
    value = row.get(keys.answer)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadRowError(f"{keys.answer}: must be given; is {_shown(value)}")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _options(row: Mapping[str, Any], keys: KeysConfig) -> tuple[str, ...]:
    value = row.get(keys.options)
    if value is None or value == "":
        return ()
    if not isinstance(value, list) or any(isinstance(each, bool) or not isinstance(each, str | int | float) for each in value):
        raise BadRowError(f"{keys.options}: must be a list of texts; is {_shown(value)}")
    return tuple(str(each) for each in value)


def _media(row: Mapping[str, Any], keys: KeysConfig) -> dict[Kind, list[Media]]:
    media: dict[Kind, list[Media]] = {
        "image": [_one(each, "image", keys.images) for each in _listed(row, keys.images)],
        "video": [_one(each, "video", keys.videos) for each in _listed(row, keys.videos)],
    }
    kind = row.get(keys.kind)
    if kind not in (None, ""):
        said = str(kind).strip().lower()
        if said not in ("text", "image", "video"):
            raise BadRowError(f"{keys.kind}: must be text, image or video; is {_shown(kind)}")
        if said == "text" and (media["image"] or media["video"]):
            raise BadRowError(f"{keys.kind}: says text, and the record has media")
        if said == "image" and not media["image"]:
            raise BadRowError(f"{keys.kind}: says image, and {keys.images} is empty")
        if said == "video" and not media["video"]:
            raise BadRowError(f"{keys.kind}: says video, and {keys.videos} is empty")
    return media


def _listed(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _one(value: Any, kind: Kind, key: str) -> Media:
    span = None
    if isinstance(value, Mapping):
        span = _span(value, key)
        value = value.get("path", value.get(kind))
    if isinstance(value, list):
        raise BadRowError(f"{key}: holds a list of frames; give the video file, since the times of loose frames are not known")
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(f"{key}: must hold paths; holds {_shown(value)}")
    return Media(kind=kind, path=value, span=span)


def _span(value: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    start, end = value.get("start"), value.get("end")
    if start is None and end is None:
        return None
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in (start, end)) or not 0 <= start < end:
        raise BadRowError(f"{key}: start and end must be seconds with 0 <= start < end; are {start!r} and {end!r}")
    return float(start), float(end)


def _problem(text: str, media: Mapping[Kind, Sequence[Media]]) -> str:
    """The text with placeholders for all media: those it has, or images and then videos before it."""
    found = PLACEHOLDER.findall(text)
    if not found:
        return "".join(f"<{kind}>" for kind in ("image", "video") for _ in media[kind]) + text  # type: ignore[index]
    for kind in ("image", "video"):
        if found.count(kind) != len(media[kind]):  # type: ignore[index]
            raise BadRowError(f"the text has {found.count(kind)} <{kind}> and the record {len(media[kind])} {kind}s")  # type: ignore[index]
    return text


def _in_order(problem: str, media: Mapping[Kind, Sequence[Media]]) -> tuple[Media, ...]:
    waiting = {kind: iter(own) for kind, own in media.items()}
    return tuple(next(waiting[kind]) for kind in PLACEHOLDER.findall(problem))


def _offline(row: Mapping[str, Any], keys: KeysConfig) -> str | None:
    text, flag = row.get(keys.offline), row.get(keys.has_offline)
    if text is not None and not isinstance(text, str):
        raise BadRowError(f"{keys.offline}: must be text; is {_shown(text)}")
    if flag is not None and not isinstance(flag, bool):
        raise BadRowError(f"{keys.has_offline}: must be true or false; is {_shown(flag)}")
    blank = text is None or not text.strip()
    if flag and blank:
        raise BadRowError(f"{keys.has_offline}: is true, and {keys.offline} is blank")
    return None if flag is False or blank else text


def _unusable(root: Path, media: Media, checked: dict[str, str | None]) -> str | None:
    """Why a file cannot be read, asked once for each path. Decoding is the cache's."""
    path = root / media.path
    key = str(path)
    if key not in checked:
        if path.is_symlink() and not path.exists():
            checked[key] = f"{path} is a link to nothing"
        elif not path.exists():
            checked[key] = f"there is no file {path}"
        elif not path.is_file():
            checked[key] = f"{path} is no file"
        elif path.stat().st_size == 0:
            checked[key] = f"{path} is empty"
        else:
            checked[key] = None
    return checked[key]


def _rooted(sample: Sample, root: Path) -> Sample:
    """The sample with absolute media paths."""
    return evolve(sample, media=tuple(evolve(media, path=str((root / media.path).absolute())) for media in sample.media))


def _known(keys: KeysConfig) -> set[str]:
    named = (keys.problem, keys.answer, keys.options, keys.task, keys.kind, keys.videos, keys.images, keys.source)
    return {*named, keys.has_offline, keys.offline}


def _kind(value: Any) -> str:
    return {list: "an array", str: "text", type(None): "null"}.get(type(value), "a number")


def _shown(value: Any) -> str:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
