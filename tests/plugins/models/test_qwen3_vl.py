"""Qwen3-VL through the family interface, against the Transformers model and processor."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import Media, ModelBatch, Prompt
from tests.tiny import image_clip, tiny_folder, tiny_model, video_clip

VIDEO = Media(kind="video", path="v.mp4")
IMAGE = Media(kind="image", path="i.png")
CASES = {
    "text": ((), ()),
    "image": ((IMAGE,), (image_clip(64, 96),)),
    "video": ((VIDEO,), (video_clip(6, 64, 64),)),
    "odd video": ((VIDEO,), (video_clip(5, 32, 64),)),
    "one frame": ((VIDEO,), (video_clip(1, 64, 64),)),
    "mixed": ((VIDEO, IMAGE, IMAGE, VIDEO), (video_clip(4, 64, 64), image_clip(32, 64), image_clip(64, 64), video_clip(3, 32, 32))),
}


def encoded(media, clips):
    family, processor, module = tiny_model()
    text = family.render(processor, Prompt(parts=(*media, "What is the colour?")), clips)
    return family, processor, module, text, family.encode(processor, text, clips)


@pytest.mark.parametrize("case", CASES)
def test_forward_is_the_models_own(case):
    media, clips = CASES[case]
    family, processor, module, text, prompt = encoded(media, clips)
    images = [clip.frames[0] for clip in clips if clip.meta is None]
    videos = [clip for clip in clips if clip.meta is not None]
    metadata = [
        {"fps": 1000.0, "frames_indices": [round(1000 * t) for t in clip.meta.times], "total_num_frames": 9000} for clip in videos
    ]
    own = processor(
        text=[text],
        images=images or None,
        videos=[clip.frames for clip in videos] or None,
        video_metadata=metadata or None,
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
    )
    assert own["input_ids"][0].tolist() == prompt.input_ids.tolist()
    features = None if prompt.patches is None else family.vision(module, prompt.patches, prompt.grid_thw)
    positions = family.position_ids(prompt)
    batch = ModelBatch(input_ids=prompt.input_ids[None], position_ids=positions[:, None], token_kind=prompt.token_kind[None])
    with torch.no_grad():
        ours = family.head(module)(family.forward(module, batch, features))
        theirs = module(**own).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_positions_of_a_video_by_hand():
    family, _, _, _, prompt = encoded((VIDEO,), (video_clip(4, 64, 64),))
    kinds, positions = prompt.token_kind, family.position_ids(prompt)
    first, second = torch.nonzero(kinds).squeeze(1).split(4)
    start = int(first[0])
    assert torch.equal(positions[:, :start], torch.arange(start).expand(3, -1))
    assert positions[:, first].tolist() == [[start] * 4, [start, start, start + 1, start + 1], [start, start + 1, start, start + 1]]
    between = int(second[0]) - int(first[-1]) - 1
    assert positions[0, second].tolist() == [start + 2 + between] * 4  # a step is two tokens high and wide


def test_times_in_the_prompt_are_presentation_times():
    clip = video_clip(4, 64, 64, times=(0.0, 0.7, 1.9, 4.0))
    _, processor, _, _, prompt = encoded((VIDEO,), (clip,))
    text = processor.tokenizer.decode(prompt.input_ids)
    assert "<0.3 seconds>" in text or "<0.4 seconds>" in text  # the mean of 0.0 and 0.7, rounded as the processor does
    assert "<3.0 seconds>" in text or "<2.9 seconds>" in text


def test_patches_are_embedded_as_by_the_convolution():
    from transformers import AutoModelForImageTextToText

    _, _, module, _, prompt = encoded((VIDEO,), (video_clip(4, 64, 64),))
    own = AutoModelForImageTextToText.from_pretrained(tiny_folder()).model.visual.patch_embed
    assert own.state_dict().keys() == module.model.visual.patch_embed.state_dict().keys()
    with torch.no_grad():
        torch.testing.assert_close(module.model.visual.patch_embed(prompt.patches), own(prompt.patches), atol=1e-5, rtol=1e-5)


def test_visual_tokens_cannot_be_sampled():
    family, processor, _ = tiny_model()
    names = processor.tokenizer.convert_ids_to_tokens(sorted(family.banned_ids(processor)))
    assert set(names) == {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>"}
