"""Video-Holmes: clues of suspense films, put together."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of

TYPES = ("SR", "IMC", "TCI", "TA", "MHR", "PAR", "CTI")


@define(kw_only=True)
class VideoHolmes(Benchmark):
    """Video-Holmes (arXiv:2505.21374): 1837 questions with six choices about 270 short suspense films.

    Data: TencentARC/Video-Holmes; `test_Video-Holmes.json` and, out of `videos.zip`, `videos_cropped/<video ID>.mp4`. Normalised:
    `holmes.json`, which does not say the type.
    Metric: accuracy, also by type: social reasoning, intention and motive chaining, temporal causal inference, timeline analysis,
    multimodal hint reasoning, physical anomaly reasoning, core theme inference.
    Protocol: the authors sample at temperature 0.1 and top-p 0.001, up to 1024 tokens.
    Pitfalls: the authors search a reply for letters in alphabetical order, which favours early ones; here its conclusion is read.
    Eight questions have two choices of the same text; only the letter of the gold is right.
    """

    api = 1
    id = "video_holmes"
    title = "Video-Holmes"
    size = 1837
    official = ("test_Video-Holmes.json", "Benchmark/test_Video-Holmes.json")
    normalised = ("holmes.json", "video_holmes.json")

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        kind = row.text("Question Type")
        if kind not in TYPES:
            raise row.problem(f"unknown question type {kind!r}; known: {', '.join(TYPES)}")
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=row.text("Question ID"),
            task="mc",
            question=row.text("Question"),
            **choices_of(row.texts("Options")),
            gold=row.text("Answer"),
            video=f"videos_cropped/{row.text('video ID')}.mp4",
            groups={"type": (kind,)},
            origin=row.origin,
        )
