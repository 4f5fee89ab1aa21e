"""LiveSports-3K QA: questions about single events of sports videos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of, normalised_item


@define(kw_only=True)
class LiveSportsQA(Benchmark):
    """LiveSports-3K QA (arXiv:2504.16030): 1174 questions with four choices about events in sports videos.

    Data: stdKonjac/LiveSports-3K; `LiveSports-3K-QA.json` (or .csv) and `videos/<video_id>.mp4`. Normalised: clips cut beforehand,
    `<video_id>_<begin>_<end>.mp4`.
    Metric: accuracy, also by kind of question and by whether text must be read.
    Protocol: the authors show up to 480 frames, 24,576 x 28 x 28 pixels in all, and take the letter with the highest logit; here
    the letter is generated and read.
    Pitfalls: four question ids are repeated, so that rows are told apart by number; only the seconds of the event may be shown.
    """

    api = 1
    id = "livesports3k_qa"
    title = "LiveSports-3K QA"
    size = 1174
    official = ("LiveSports-3K-QA.json", "LiveSports-3K-QA.csv")
    normalised = ("livesports3k_qa.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        video = row.text("video_id")
        letters = [row.get(f"option_{letter}", f"option_{letter.lower()}", letter) for letter in "ABCD"]
        options = row.texts("options") if row.get("options") else tuple(str(text) for text in letters if text is not None)
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=f"{video}_{row.text('question_id')}",
            task="mc",
            question=row.text("question"),
            **choices_of(options),
            gold=row.text("answer"),
            video=f"videos/{video}.mp4",
            clip=(row.number("begin", "video_start"), row.number("end", "video_end")),
            groups=_groups(row.text("q_type"), row.number("OCR")),
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        groups = _groups(row.text("q_type_livesports"), row.number("ocr_livesports"))
        yield evolve(normalised_item(row, self.id), groups=groups)


def _groups(kind: str, ocr: float) -> Mapping[str, tuple[str, ...]]:
    return {"q_type": (kind,), "ocr": ("OCR" if ocr else "non-OCR",)}
