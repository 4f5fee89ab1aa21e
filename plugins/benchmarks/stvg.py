"""Spatio-temporal grounding: when and where something is seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, Skipped
from evr1_core.api.answers import Tube, box
from evr1_core.api.releases import normalised_item, read_release

FIRST = 2000  # rows of the release that are the benchmark


@define(kw_only=True)
class SpatioTemporalGrounding(Benchmark):
    """Spatio-temporal video grounding on VidSTG, as in ST-Align (arXiv:2501.08282): 2000 sentences, each for a span and its boxes.

    Data: appletea2333/ST-Align-Benchmark, `stvg.json`, of which the first 2000 rows count, and the videos of VidOR under the paths
    that it names. Normalised: `stvg.json` with a list of `solution`s.
    Metric: `score`, half `tiou` and half `miou` (mean box IoU over the seconds that both name), tiou alone for rows without boxes;
    also `viou`, which divides by the seconds that either names, and the share of rows with at least 0.3, 0.5 and 0.7 of it.
    Protocol: one box for each whole second of the span. The whole video is shown and times count from its start; the authors show
    100 frames of the annotated part.
    Pitfalls: one easy box can give a `miou` of 1, never a `viou` of 1. Golds are pixels of the source; answers come in the space of
    the model. Official golds count frames: the rate is read from the videos, which have to be there.
    """

    api = 1
    id = "stvg"
    title = "ST-Align STVG"
    size = 2000
    official = ("stvg.json",)
    normalised = ("stvg.json",)
    metrics = ("score", "tiou", "miou", "viou", "viou@0.3", "viou@0.5", "viou@0.7")

    def load(self, paths: BenchmarkPaths) -> Iterator[EvalItem | Skipped]:
        files, rates = self.files(paths), dict[str, float]()
        if not files:
            yield from super().load(paths)  # says what is missing
        for row in read_release(files):
            if row.get("solution"):  # both forms have the same name
                yield from self.from_normalised(row)
            elif row.index >= FIRST:
                yield Skipped(origin=row.origin, reason=f"behind the first {FIRST} rows")
            else:
                yield self._official(row, paths, rates)

    def _official(self, row: Row, paths: BenchmarkPaths, rates: dict[str, float]) -> EvalItem:
        video, meta = row.text("video_path"), row.with_values(**row.any("meta"))
        if video not in rates:
            rates[video] = _rate(row, paths.folder / (self.locate(video, paths) or video))
        frames = row.with_values(**meta.any("time_token"))
        start, end = (frames.number(token) / rates[video] for token in ("<s>", "<e>"))
        tube = Tube((start, end), _by_second(meta, rates[video], start, end))
        question = row.with_values(**row.any("conversations")[0]).text("value").replace("<video>", "").strip()
        item = EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            task="stgrounding",
            question=question,
            gold=tube,
            video=video,
            size=(int(meta.number("width")), int(meta.number("height"))),
            fps=rates[video],
            origin=row.origin,
        )
        return _grouped(item)

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield _grouped(normalised_item(row, self.id))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, f"videos/{path}")


def _grouped(item: EvalItem) -> EvalItem:
    asks = item.question.startswith(("Who", "What "))
    return evolve(item, groups={"sentence": ("interrogative" if asks else "declarative",)})


def _by_second(meta: Row, rate: float, start: float, end: float) -> Mapping[float, Any]:
    """For each whole second of a span the box of the nearest annotated frame, corners in pixels; no second without one near."""
    boxes = {int(frame): value for frame, value in (meta.any("spatial_token").get("<bboxes>") or {}).items()}
    found = {}
    for second in range(math.ceil(start), math.floor(end) + 1) if boxes else ():
        near = min(boxes, key=lambda frame: abs(frame - second * rate))
        if abs(near - second * rate) <= rate / 2:
            x, y, width, height = boxes[near]
            found[float(second)] = box([x, y, x + width, y + height])
    return found


def _rate(row: Row, file: Path) -> float:
    """Frames per second of a video."""
    import av

    try:
        with av.open(str(file)) as container:
            if rate := container.streams.video[0].average_rate:
                return float(rate)
    except (OSError, av.FFmpegError, IndexError) as error:
        raise row.problem(f"golds count frames, and the rate of {file} cannot be read: {error}") from error
    raise row.problem(f"golds count frames, and {file} says no rate")
