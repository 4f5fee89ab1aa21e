"""Records as users have them, checked and made into samples; bad rows are all listed and nothing is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from evr1_core.api.errors import DataError
from evr1_core.api.files import Row, read_rows
from evr1_core.api.samples import Sample
from evr1_core.config.schema import DataConfig, KeysConfig
from evr1_core.data import fields
from evr1_core.data.fields import BadRowError
from evr1_core.data.media import FileCheck, in_order, read_media, with_placeholders
from evr1_core.data.tasks import canonical


def read_samples(files: Sequence[str], config: DataConfig, *, split: str = "") -> list[Sample]:
    """The samples of data files, in order, with absolute media paths.

    Raises DataError with the place and reason of every row that cannot be used. ``split`` names what they are for.
    """
    reader = _Reader(config)
    for file in files:
        reader.take(Path(file))
    if reader.problems:
        raise DataError(reader.problems)
    return reader.samples


class _Reader:
    """Collects samples and problems over files."""

    def __init__(self, config: DataConfig) -> None:
        self._config = config
        self._places: dict[str, str] = {}  # of uids
        self._stems: dict[str, Path] = {}
        self._files = FileCheck()
        self.samples: list[Sample] = []
        self.problems: list[str] = []

    def take(self, path: Path) -> None:
        """All rows of a file."""
        other = self._stems.setdefault(path.stem, path)
        clash = other is not path and not self._config.keys.uid
        if clash:  # said once, and not for every row
            self.problems.append(
                f"{path}: is called like {other}, and ids are made of file name and row; rename it or set data.keys.uid"
            )
        try:
            rows, problems = read_rows(path)
        except DataError as error:
            self.problems += error.problems
            return
        self.problems += problems
        root = Path(self._config.media_root) if self._config.media_root else path.parent
        for row in rows:
            self._take_row(row, f"{path.stem}:{row[0]}", root, clash)

    def _take_row(self, row: Row, uid: str, root: Path, clash: bool) -> None:
        _, place, content = row
        try:
            sample = _sample(content, self._config.keys, uid, place)
        except BadRowError as error:
            self.problems.append(f"{place}: {error}")
            return
        first = self._places.setdefault(sample.uid, place)
        if first != place and not clash:
            self.problems.append(f"{place}: uid {sample.uid!r} stands at {first} too")
        paths = [root / media.path for media in sample.media]
        reasons = dict.fromkeys(filter(None, map(self._files.problem, paths)))
        self.problems += [f"{place}: {reason}" for reason in reasons]
        if not reasons:
            media = tuple(evolve(each, path=str(path.absolute())) for each, path in zip(sample.media, paths, strict=True))
            self.samples.append(evolve(sample, media=media))


def _sample(row: Any, keys: KeysConfig, uid: str, place: str) -> Sample:
    if not isinstance(row, Mapping):
        raise BadRowError(f"a record must be an object; is {fields.shown(row)}")
    media = read_media(row, keys)
    problem = with_placeholders(fields.read_text(row, keys.problem), media)
    return Sample(
        uid=fields.read_uid(row, keys, uid),
        task=canonical(fields.read_text(row, keys.task)),
        problem=problem,
        answer=fields.read_answer(row, keys),
        options=fields.read_options(row, keys),
        media=in_order(problem, media),
        source=fields.read_optional_text(row, keys.source),
        offline=fields.read_offline(row, keys),
        offline_logprobs=fields.read_offline_logprobs(row, keys),
        origin=place,
        extra={key: value for key, value in row.items() if key not in _known(keys)},
    )


def _known(keys: KeysConfig) -> set[str]:
    named = (keys.problem, keys.answer, keys.options, keys.task, keys.kind, keys.videos, keys.images, keys.source)
    return {*named, keys.has_offline, keys.offline, keys.offline_logprobs}
