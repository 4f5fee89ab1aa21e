"""The time that a model is told: the same in training, in rollouts and for an engine, from the record of the kept frames."""

from __future__ import annotations

import re

import av
import numpy as np
import pytest

from evr1_core.api import Media, Prompt
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import CacheConfig, FramesConfig
from tests.plugins.models.made_up import FAMILIES, VIDEO, made_up
from tests.tiny import tiny_model, video_clip

STAMPED = ("qwen3_vl", "qwen3_5")
# frames shown at these seconds, and the mean of the two frames of a step, as Qwen3-VL writes it
STAMPS = {
    "1 fps": ((0.0, 1.0, 2.0, 3.0), ["0.5", "2.5"]),
    "4 fps": ((0.0, 0.25, 0.5, 0.75), ["0.1", "0.6"]),
    "1.5 fps": ((0.0, 2 / 3, 4 / 3, 2.0), ["0.3", "1.7"]),
    "uneven": ((0.0, 0.8, 1.9, 4.1), ["0.4", "3.0"]),
    "odd": ((0.0, 1.0, 2.0), ["0.5", "2.0"]),
    "one frame": ((0.0,), ["0.0"]),
    "long": ((3599.0, 3600.0), ["3599.5"]),
}


def stamps(processor, ids):
    return re.findall(r"<([\d.]+) seconds>", processor.tokenizer.decode(ids))


@pytest.mark.parametrize("name", STAMPED)
@pytest.mark.parametrize("case", STAMPS)
def test_the_prompt_says_when_frames_were_shown(name, case):
    times, written = STAMPS[case]
    made = made_up(name, clips=(video_clip(len(times), 64, 64, times=times),))
    assert stamps(made.processor, made.encoded.input_ids) == written


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("case", ["text", "video", "odd video", "one frame", "videos", "mixed", "image first"])
def test_an_engine_makes_the_same_prompt_of_its_input(name, case):
    """An engine gives frames and record to the family's processor, without resizing and sampling, as we ask it."""
    made = made_up(name, case)
    given = made.family.engine_input(made.text, made.clips)
    assert given.text == made.text
    assert given.processor_kwargs == ({"do_resize": False} if made.clips else {})
    records = [dict(record) for _, record in given.media.get("video", ())]
    assert all(record.pop("do_sample_frames") is False for record in records)
    assert all(type(record["frames_indices"]) is list for record in records)
    assert all(frames.dtype == np.uint8 and frames.shape[-1] == 3 for frames, _ in given.media.get("video", ()))
    out = made.processor(
        text=[given.text],
        images=list(given.media.get("image", ())) or None,
        videos=[frames for frames, _ in given.media.get("video", ())] or None,
        video_metadata=records or None,
        do_sample_frames=False,
        return_tensors="pt",
        **given.processor_kwargs,
    )
    assert out["input_ids"][0].tolist() == made.encoded.input_ids.tolist()
    assert tuple(map(float, out.get("second_per_grid_ts", ()))) == made.encoded.seconds_per_step


@pytest.mark.parametrize("name", FAMILIES)
def test_a_record_may_be_used_again(name):
    """Processors extend an odd list of indices where it stands."""
    made = made_up(name, "odd video")
    again = made.family.encode(made.processor, made.text, made.clips)
    assert again.input_ids.tolist() == made.encoded.input_ids.tolist()


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A film that shows a frame each quarter second for two seconds, then each second for four."""
    path = tmp_path_factory.mktemp("film") / "uneven.mkv"
    quarters = [*range(8), *range(8, 24, 4)]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=4)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for quarter in quarters:
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 10 * quarter, dtype=np.uint8), format="rgb24")
            frame.pts = quarter
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def cached(path, family, folder, span=None, **frames):
    settings = FramesConfig(video_min_pixels=1024, video_max_pixels=4096, **frames)
    cache = FrameCache(CacheConfig(), settings, family.grid, media_root=path.parent, folder=folder, isolated=False)
    return cache.clip(Media(kind="video", path=path.name, span=span))


def prompt_of(name, clip):
    family, processor, _ = tiny_model(name)
    return processor, family.encode(processor, family.render(processor, Prompt(parts=(VIDEO, "When?")), [clip]), [clip])


@pytest.mark.parametrize("name", STAMPED)
def test_times_of_a_film_of_variable_rate_are_those_it_is_shown_at(name, uneven, tmp_path):
    clip = cached(uneven, tiny_model(name)[0], tmp_path, video_frames=12)
    assert clip.meta.times == tuple(quarter / 4 for quarter in [*range(8), *range(8, 24, 4)])
    processor, encoded = prompt_of(name, clip)
    assert stamps(processor, encoded.input_ids) == ["0.1", "0.6", "1.1", "1.6", "2.5", "4.5"]


@pytest.mark.parametrize("name", STAMPED)
def test_times_of_a_span_begin_with_its_first_frame(name, uneven, tmp_path):
    clip = cached(uneven, tiny_model(name)[0], tmp_path, span=(1.0, 4.0), video_frames=6)
    processor, encoded = prompt_of(name, clip)
    assert clip.meta.times == (0.0, 0.25, 0.5, 0.75, 1.0, 2.0)
    assert stamps(processor, encoded.input_ids) == ["0.1", "0.6", "1.5"]


def test_the_rate_of_a_span_is_its_own(uneven, tmp_path):
    clip = cached(uneven, tiny_model("qwen2_5_vl")[0], tmp_path, span=(1.0, 4.0), video_frames=6)
    _, encoded = prompt_of("qwen2_5_vl", clip)
    assert encoded.seconds_per_step == (1.0,)  # three seconds, three steps
