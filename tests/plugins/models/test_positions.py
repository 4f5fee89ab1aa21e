"""Position ids against the models' own, and worked by hand."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from evr1_core.api import Clip, Encoded, VideoMetadata
from evr1_core.registry.loading import load_class, resolve
from tests.plugins.models.made_up import CASES, FAMILIES, made_up, own_inputs
from tests.tiny import video_clip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("case", CASES)
def test_positions_are_the_models_own(name, case):
    made = made_up(name, case)
    own = own_inputs(made)
    pixels = ("pixel_values", "pixel_values_videos")
    theirs, delta = made.module.model.get_rope_index(**{key: value for key, value in own.items() if key not in pixels})
    ours = made.family.position_ids(made.encoded)
    assert torch.equal(ours, theirs[:, 0])
    assert int(ours.max()) + 1 == len(made.encoded.input_ids) + int(delta)


# seconds that the frames are shown at, length of the span, positions of the steps of Qwen2.5-VL: two positions a second
TIMES = {
    "1 fps": ((0.0, 1.0, 2.0, 3.0), 4.0, [0, 4]),
    "2 fps": (tuple(i / 2 for i in range(8)), 4.0, [0, 2, 4, 6]),
    "4 fps": (tuple(i / 4 for i in range(8)), 2.0, [0, 1, 2, 3]),
    "1.5 fps": (tuple(i / 1.5 for i in range(6)), 4.0, [0, 2, 5]),  # 4/3 s a step: 0, 8/3, 16/3, rounded down
    "8 fps": (tuple(i / 8 for i in range(8)), 1.0, [0, 0, 1, 1]),  # two steps share a position: half a position apart
    "uneven": ((0.0, 0.1, 0.2, 3.0), 4.0, [0, 4]),  # the mean rate counts, as in the processor
    "odd": ((0.0, 1.0, 2.0), 3.0, [0, 4]),
    "one frame": ((0.0,), 0.5, [0]),
}


@pytest.mark.parametrize("case", TIMES)
@pytest.mark.parametrize("filled", [False, True], ids=["as it is", "last frame repeated"])
def test_steps_of_qwen2_5_vl_stand_at_their_time(case, filled):
    times, duration, steps = TIMES[case]
    made = made_up("qwen2_5_vl", clips=(clip_at(times, duration, filled=filled),))
    with pytest.warns(UserWarning, match="0.25 s apart") if case == "8 fps" else nullcontext():
        positions = made.family.position_ids(made.encoded)
    at = positions[0, made.encoded.token_kind == 2]
    assert (at - at[0]).tolist() == steps


def clip_at(times, duration, *, filled=False, start=0.0):
    """A video of 28 x 28 pixels, kept at ``times`` of a span of ``duration`` seconds; ``filled`` as the cache fills a step."""
    times = (*times, times[-1]) if filled and len(times) % 2 else tuple(times)
    count = len(set(times))
    indices = tuple(min(round((start + 1) * 30) + place, round((start + 1) * 30) + count - 1) for place in range(len(times)))
    frames = video_clip(count, 28, 28).frames
    frames = torch.cat([frames, frames[-1:]]) if len(times) > count else frames
    meta = VideoMetadata(
        fps=30.0,
        total_frames=100_000,
        duration=duration,
        indices=indices,
        times=times,
        height=28,
        width=28,
        source_height=28,
        source_width=28,
    )
    return Clip(frames=frames, meta=meta)


def kinds_of(text):
    """``t`` text, ``i`` image, ``v`` video."""
    return torch.tensor(["tiv".index(each) for each in text], dtype=torch.int8)


def positions(name, kinds, grids, media, seconds=(), **options):
    encoded = Encoded(
        input_ids=torch.zeros(len(kinds), dtype=torch.long),
        token_kind=kinds_of(kinds),
        grid_thw=torch.tensor(grids) if grids else None,
        media_kinds=media,
        seconds_per_step=seconds,
    )
    return load_class(resolve("models", name))(**options).position_ids(encoded).tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_text_and_an_image_by_hand(name):
    """Two words, an image of 2 x 3 tokens from 2 on, two words from 2 + 3 on."""
    assert positions(name, "ttiiiiiitt", [[1, 4, 6]], ("image",)) == [
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6],
    ]


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl"])
def test_a_block_of_video_by_hand(name):
    """Two steps of 1 x 2 tokens; a step takes 1 position in Qwen2-VL, 1.5 s of it 3 in Qwen2.5-VL."""
    step = {"qwen2_vl": 1, "qwen2_5_vl": 3}[name]
    assert positions(name, "tvvvvtt", [[2, 2, 4]], ("video",), (1.5,)) == [
        [0, 1, 1, 1 + step, 1 + step, 3, 4],
        [0, 1, 1, 1, 1, 3, 4],
        [0, 1, 2, 1, 2, 3, 4],
    ]


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl"])
def test_text_behind_the_last_step_on_request(name):
    """Four steps of one token, the last at 1 + 3, or at 1 + 6 with a second a step: the paper has the text go on behind it."""
    last = {"qwen2_vl": 4, "qwen2_5_vl": 7}[name]
    times = positions(name, "tvvvvtt", [[4, 2, 2]], ("video",), (1.0,), past_time=True)[0]
    assert times[4:] == [last, last + 1, last + 2]
    assert positions(name, "tvvvvtt", [[4, 2, 2]], ("video",), (1.0,))[0][5:] == [2, 3]


@pytest.mark.parametrize("name", ["qwen3_vl", "qwen3_5"])
def test_steps_between_their_times_by_hand(name):
    """A step is an image of its own: 2 x 2 tokens from 1 on, a word for the time at 3, the next from 4 on."""
    assert positions(name, "tvvvvtvvvvt", [[2, 4, 4]], ("video",)) == [
        [0, 1, 1, 1, 1, 3, 4, 4, 4, 4, 6],
        [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6],
        [0, 1, 2, 1, 2, 3, 4, 5, 4, 5, 6],
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_text_alone_counts_on(name):
    assert positions(name, "ttt", [], ()) == [[0, 1, 2]] * 3
