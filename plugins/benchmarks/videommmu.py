"""Video-MMMU: what models learn from lectures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from attrs import define, evolve, field

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, PromptStyle, Row, ScoredRow
from evr1_core.api.aggregates import grouped, means
from evr1_core.api.items import Task
from evr1_core.api.questions import ask
from evr1_core.api.releases import choices_of, normalised_item, read_gold
from evr1_core.api.samples import Prompt
from evr1_core.api.subtitles import Line

TRACKS = ("Adaptation", "Comprehension", "Perception")  # in the order of the normalised file, 300 questions each
ALONE = "Adaptation, question only"
QUESTIONS = "question_only"
SUBJECTS: Mapping[str, str] = {
    **dict.fromkeys(("Art", "Art_Theory", "Design", "Music"), "Art"),
    **dict.fromkeys(("Accounting", "Economics", "Finance", "Manage", "Marketing"), "Business"),
    **dict.fromkeys(("Biology", "Chemistry", "Geography", "Math", "Physics"), "Science"),
    **dict.fromkeys(("Basic_Medical_Science", "Clinical_Medicine", "Diagnostics_and_Laboratory_Medicine"), "Medicine"),
    **dict.fromkeys(("Pharmacy", "Public_Health"), "Medicine"),
    **dict.fromkeys(("History", "Literature", "Sociology", "Psychology"), "Humanities"),
    **dict.fromkeys(("Agriculture", "Architecture_and_Engineering", "Computer_Science", "Electronics"), "Engineering"),
    **dict.fromkeys(("Energy_and_Power", "Materials", "Mechanical_Engineering"), "Engineering"),
}
HINTS: Mapping[str, str] = {
    "Adaptation": "The image that the question names is given after the video; it is also the last frame of the video.",
    "Comprehension": "Ignore the question that the last frame of the video shows.",
    "Perception": "Ignore the question that the last frame of the video shows.",
    ALONE: "The image that the question names is given after the video.",
}
_NAME = re.compile(r"(?:dev|validation|test|new)_(\w+)_\d+")


@define(kw_only=True)
class VideoMMMU(Benchmark):
    """Video-MMMU (arXiv:2501.13826): 300 lectures with three questions each: perception, comprehension, adaptation.

    Data: lmms-lab/VideoMMMU; the tables `<track>/*.parquet` and the unpacked zips, `<discipline>/<id>.mp4` and
    `question_only/<id>.mp4`. The images of Adaptation stand in its table: what `images/` lacks of them is written there.
    Normalised: `videommmu_with_image.json`, videos also without folders.
    Metric: accuracy, also by track and discipline; with `question_only`, `alone` and `delta_knowledge`, the share of what was wrong
    without the lecture that is right with it, in percent, below 0 when the lecture does harm.
    Protocol: Qwen3-VL takes up to 768 tokens a frame. A hint says what the last frame shows: the question of Adaptation.
    Pitfalls: up to 14 choices; some stand in the image alone and are empty texts here. 18 answers are numbers, compared after
    rounding to 2 places; the authors accept any number of the conclusion, here the last one counts.
    """

    api = 1
    id = "videommmu"
    title = "Video-MMMU"
    size = 900
    official = ("*/*.parquet",)
    normalised = ("videommmu_with_image.json", "videommmu.json")
    protocols: ClassVar = {"qwen3_vl": {"frame_tokens": 768}}

    question_only: bool = field(default=False, metadata={"help": "ask the 300 of Adaptation also without the lecture"})

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        track, name, options = row.file.parent.name, row.text("id"), row.get("options") or ()
        if track not in TRACKS:
            raise row.problem(f"the folder of this file is none of {', '.join(TRACKS)}")
        if track == "Adaptation":
            _unpack(row, row.file.parents[1] / f"images/{name}.png")
        task: Task = "mc" if len(options) else "numeric"
        item = EvalItem(
            uid=f"{self.id}/{track}/{name}",
            bench=self.id,
            source_id=name,
            task=task,
            question=row.text("question"),
            **choices_of(options),
            gold=read_gold(task, row.text("answer"), options),
            video=f"{_discipline(row, name)}/{name}.mp4",
            images=(f"images/{name}.png",) if track == "Adaptation" else (),
            origin=row.origin,
        )
        yield from self._asked(row, item, track, name)

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        item = normalised_item(row, self.id)
        number = row.number("problem_id")
        if not 0 <= number < 300 * len(TRACKS):
            raise row.problem(f"problem_id {number:g} is none of 0 to {300 * len(TRACKS) - 1}, so that its track is not known")
        yield from self._asked(row, item, TRACKS[int(number) // 300], Path(item.video).stem)

    def _asked(self, row: Row, item: EvalItem, track: str, name: str) -> Iterable[EvalItem]:
        discipline = (_discipline(row, name),)
        yield evolve(item, groups={"track": (track,), "discipline": discipline})
        if self.question_only and track == "Adaptation":
            yield evolve(item, uid=f"{item.uid}/alone", video=f"{QUESTIONS}/{name}.mp4", groups={"track": (ALONE,)})

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        if path.startswith(f"{QUESTIONS}/"):
            return paths.medium(path)
        name, match = Path(path).name, _NAME.fullmatch(Path(path).stem)
        discipline = SUBJECTS.get(match[1], "") if match else ""
        return paths.medium(path, f"{discipline}/{name}", name)

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        return ask(item, style, f"{HINTS[item.groups['track'][0]]}\n{item.question}", transcript)

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        lectures = [row for row in rows if row.item.groups["track"] != (ALONE,)]
        found = {**means(lectures), **grouped(rows)}
        alone, taught = found.get(f"track={ALONE}/accuracy"), found.get("track=Adaptation/accuracy")
        if alone is None:
            return found
        found["alone"] = alone
        if taught is not None and alone < 100:
            found["delta_knowledge"] = 100 * (taught - alone) / (100 - alone)
        return found


def _discipline(row: Row, name: str) -> str:
    subject = match[1] if (match := _NAME.fullmatch(name)) else name
    if subject not in SUBJECTS:
        raise row.problem(f"{name!r} names no known subject; known: {', '.join(SUBJECTS)}")
    return SUBJECTS[subject]


def _unpack(row: Row, file: Path) -> None:
    """Writes the image of a row where it is not there yet, whole or not at all."""
    image = row.get("image")
    content = image.get("bytes") if isinstance(image, Mapping) else None
    if not content or file.exists():
        return
    partial = file.with_suffix(".partial")
    try:
        file.parent.mkdir(exist_ok=True)
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        raise row.problem(f"its image cannot be written to {file}: {error.strerror}") from error
