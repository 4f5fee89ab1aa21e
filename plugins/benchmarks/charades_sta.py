"""Charades-STA: when something happens in a video of a household."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from attrs import define

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, PromptStyle, Row, Skipped
from evr1_core.api.files import text_of
from evr1_core.api.questions import ask
from evr1_core.api.releases import normalised_item
from evr1_core.api.samples import Prompt
from evr1_core.api.subtitles import Line

FOLDER = "Charades_v1_480"
_LINE = re.compile(r"(?P<video>\S+) (?P<start>[\d.]+) (?P<end>[\d.]+)##(?P<caption>.*\S)\s*")
_THOUGHT = re.compile(r"<think>\s*(\{.*\})\s*</think>", re.DOTALL)


@define(kw_only=True)
class CharadesSta(Benchmark):
    """Charades-STA (arXiv:1705.02101): 3720 sentences, each to be found in one of 1334 videos.

    Data: `charades_sta_test.txt`, or the tables `data/test-*.parquet` of lmms-lab/charades_sta, and `Charades_v1_480/<id>.mp4`.
    Normalised: `charades_sta.json`, whose times are rounded to frames.
    Metric: `iou`, the mean temporal IoU (mIoU), and `r1@m`, the share of sentences with at least m, for 0.3, 0.5 and 0.7.
    Protocol: Qwen3-VL reports 4 frames per second.
    Pitfalls: some spans end behind the video; they stay as they are, only answers are cut to its length. In the normalised form the
    gold stands between think tags.
    """

    api = 1
    id = "charades_sta"
    title = "Charades-STA"
    size = 3720
    official = ("charades_sta_test.txt", "data/test-*.parquet", "test-*.parquet")
    normalised = ("charades_sta.json",)
    metrics = ("iou", "r1@0.3", "r1@0.5", "r1@0.7")
    protocols: ClassVar = {"qwen3_vl": {"fps": 4.0}}

    def load(self, paths: BenchmarkPaths) -> Iterator[EvalItem | Skipped]:
        files = paths.official(self.official[:1])
        if not files:
            yield from super().load(paths)
        for file in files:
            for index, line in enumerate(text_of(file).splitlines()):
                row = Row(values={"value": line}, index=index, origin=f"{file}:{index + 1}", file=file)
                if (found := _LINE.fullmatch(line)) is None:
                    raise row.problem(f"is no line 'VIDEO START END##SENTENCE': {line!r:.80}")
                yield from self.from_official(row.with_values(**found.groupdict(), timestamp=(found["start"], found["end"])))

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        start, end = (row.with_values(second=each).number("second") for each in row.any("timestamp"))
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            task="tgrounding",
            question=row.text("caption"),
            gold=(start, end),
            video=f"{FOLDER}/{row.text('video').removesuffix('.mp4')}.mp4",
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        thought = _THOUGHT.search(row.text("solution"))
        yield normalised_item(row.with_values(solution=thought[1]) if thought else row, self.id)

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, f"{FOLDER}/{path}")

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        return ask(item, style, f'When in the video does this happen: "{item.question}"?', transcript)
