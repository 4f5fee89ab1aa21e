"""Prompts of every kind for every family, and what its own processor and model make of them."""

from __future__ import annotations

from attrs import frozen

from evr1_core.api import Clip, Encoded, Media, Prompt
from tests.tiny import image_clip, tiny_model, video_clip

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5")
IMAGE, VIDEO = Media(kind="image", path="i.png"), Media(kind="video", path="v.mp4")

# (frames, rows, columns) in merged patches; no frames: an image
CASES = {
    "text": (),
    "image": ((0, 2, 3),),
    "images": ((0, 2, 3), (0, 1, 2), (0, 3, 1)),
    "video": ((6, 2, 2),),
    "odd video": ((5, 1, 2),),
    "one frame": ((1, 2, 2),),
    "videos": ((4, 2, 2), (3, 1, 1), (8, 1, 2)),
    "mixed": ((4, 2, 2), (0, 1, 2), (0, 2, 2), (3, 1, 1)),
    "image first": ((0, 2, 1), (2, 2, 2), (0, 1, 1), (4, 1, 3)),
}


@frozen
class MadeUp:
    family: object
    processor: object
    module: object
    clips: tuple[Clip, ...]
    text: str
    encoded: Encoded


def clips_of(case, factor):
    """Clips of noise; sides are multiples of ``factor`` pixels."""
    return tuple(
        video_clip(frames, rows * factor, columns * factor, seed=seed)
        if frames
        else image_clip(rows * factor, columns * factor, seed=seed)
        for seed, (frames, rows, columns) in enumerate(CASES[case])
    )


def made_up(name, case="text", clips=None):
    """A prompt with words before, between and behind its media."""
    family, processor, module = tiny_model(name)
    clips = clips_of(case, family.grid.factor) if clips is None else clips
    parts = [part for clip in clips for part in (IMAGE if clip.meta is None else VIDEO, "and then")]
    text = family.render(processor, Prompt(parts=("Look.", *parts, "What is the colour?")), clips)
    return MadeUp(family, processor, module, clips, text, family.encode(processor, text, clips))


def own_inputs(made, **changes):
    """What the family's processor gives for the same frames, at two frames a second, with an odd last frame left to it."""
    videos = [clip for clip in made.clips if clip.meta is not None]
    metadata = [
        {"fps": 2.0, "frames_indices": list(range(len(c.frames))), "total_num_frames": len(c.frames), "duration": len(c.frames) / 2}
        for c in videos
    ]
    arguments = {
        "text": [made.text],
        "images": [clip.frames[0] for clip in made.clips if clip.meta is None] or None,
        "videos": [clip.frames for clip in videos] or None,
        "video_metadata": metadata or None,
        "return_tensors": "pt",
        "size": {"shortest_edge": 1, "longest_edge": 10**8},
    }
    if any(len(clip.frames) == 1 for clip in videos):
        arguments["do_resize"] = False  # Qwen3-VL's resizing refuses a single frame
    return made.processor(**arguments | changes)
