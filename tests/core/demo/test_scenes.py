"""Films show what their scenes say, after encoding and decoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evr1_core.demo.questions import CONFUSED, rows_of
from evr1_core.demo.scenes import COLOURS, Scene, draw, random_scene, write_film


def scene(**changes):
    values = {
        "colour": "blue",
        "direction": "right",
        "count": 2,
        "round_shapes": True,
        "start": 1,
        "end": 3,
        "length": 4,
        "fps": 8,
        "width": 96,
        "height": 80,
        "seed": 7,
    }
    return Scene(**(values | changes))


def bright(frame):
    """Pixels that are far from the grey background."""
    return np.ptp(frame.astype(int), axis=-1) > 60


def test_shapes_are_seen_from_start_to_end_only(tmp_path: Path):
    import av

    write_film(scene(), tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        frames = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    assert len(frames) == 32
    seen = [time for time, frame in frames if bright(frame).any()]
    assert seen == pytest.approx([1 + index / 8 for index in range(16)])
    middle = frames[16][1]
    colour = middle[bright(middle)].mean(axis=0)
    assert abs(colour - np.array(COLOURS["blue"])).max() < 30


@pytest.mark.parametrize(("direction", "sign"), [("right", 1), ("left", -1)])
def test_shapes_move_the_way_they_are_said_to(direction, sign):
    frames = draw(scene(direction=direction, width=80))
    centres = [np.argwhere(bright(frame)).mean(axis=0)[1] for frame in (frames[8], frames[14])]
    assert sign * (centres[1] - centres[0]) > 5


@pytest.mark.parametrize("count", [1, 2, 3])
def test_number_of_shapes(count):
    columns = bright(draw(scene(count=count, round_shapes=False, fps=10))[12]).any(axis=1)
    assert int((np.diff(columns.astype(int)) == 1).sum() + columns[0]) == count


def test_scenes_lie_within_their_films():
    generator = np.random.default_rng(0)
    for _ in range(200):
        one = random_scene(generator)
        assert 0 <= one.start < one.end <= one.length


def test_answers_are_right_and_the_teacher_errs_only_where_it_is_said_to():
    generator = np.random.default_rng(1)
    wrong = {kind: [0, 0] for kind in CONFUSED}
    for number in range(400):
        one = random_scene(generator)
        truth = {"colour": one.colour, "direction": one.direction, "count": str(one.count)}
        for row in rows_of(one, f"films/{number}.mp4"):
            kind = row["data_source"].removeprefix("shapes ")
            if kind == "span":
                assert row["answer"] == f'<answer>{{"time": [{one.start}, {one.end}]}}</answer>'
                continue
            right = next(option for option in row["options"] if option.endswith(f" {truth[kind]}"))
            assert row["answer"] == f"<answer>{right[0]}</answer>"
            erred = not row["offline_output"].endswith(row["answer"])
            assert not erred or truth[kind] in CONFUSED[kind]
            if truth[kind] in CONFUSED[kind]:
                wrong[kind][0] += erred
                wrong[kind][1] += 1
    assert all(0.5 < errors / total < 0.8 for errors, total in wrong.values())
