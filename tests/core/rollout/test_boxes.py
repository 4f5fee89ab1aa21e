"""The box space of a model family for one record."""

from __future__ import annotations

import torch

from evr1_core.api import BoxSpace, Clip, Media, Sample, VideoMetadata
from evr1_core.rollout.boxes import expected_space, prediction_space

META = VideoMetadata(
    fps=25.0,
    total_frames=50,
    duration=2.0,
    indices=(0, 25),
    times=(0.0, 1.0),
    height=28,
    width=56,
    source_height=480,
    source_width=640,
)


def test_sizes_of_the_first_clip() -> None:
    clip = Clip(frames=torch.zeros(2, 3, 28, 56, dtype=torch.uint8), meta=META)
    expected = BoxSpace(kind="resized", width=640, height=480, resized_width=56, resized_height=28)
    assert prediction_space("resized", [clip]) == expected


def test_unknown_sizes() -> None:
    image = Clip(frames=torch.zeros(1, 3, 28, 56, dtype=torch.uint8))
    assert prediction_space("norm1000", [image]) == BoxSpace(kind="norm1000", resized_width=56, resized_height=28)
    assert prediction_space("norm1000", []) == BoxSpace(kind="norm1000")


def test_before_decoding_only_a_video_promises_sizes() -> None:
    def sample(*media: Media) -> Sample:
        return Sample(uid="1", task="t", problem="", answer="", media=media)

    assert expected_space("norm1000", sample(Media(kind="video", path="a.mp4"))).width > 0
    assert expected_space("norm1000", sample(Media(kind="image", path="a.png"))) == BoxSpace(kind="norm1000")
    assert expected_space("resized", sample()) == BoxSpace(kind="resized")
