"""Every family against its own processor and its own model."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import Clip, ModelBatch, ModelError, Prompt, VideoMetadata
from tests.plugins.models.made_up import CASES, FAMILIES, IMAGE, VIDEO, made_up, own_inputs
from tests.tiny import image_clip, tiny_folder, tiny_model, video_clip

every_family = pytest.mark.parametrize("name", FAMILIES)
every_case = pytest.mark.parametrize("case", CASES)


@every_family
@every_case
def test_forward_is_the_models_own(name, case):
    made = made_up(name, case)
    encoded = made.encoded
    features = None if encoded.patches is None else made.family.vision(made.module, encoded.patches, encoded.grid_thw)
    batch = ModelBatch(
        input_ids=encoded.input_ids[None],
        position_ids=made.family.position_ids(encoded)[:, None],
        token_kind=encoded.token_kind[None],
    )
    with torch.no_grad():
        ours = made.family.head(made.module)(made.family.forward(made.module, batch, features))
        theirs = made.module(**own_inputs(made)).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@every_family
@every_case
def test_inputs_are_those_of_the_processor(name, case):
    made = made_up(name, case)
    own = own_inputs(made)
    assert made.encoded.input_ids.tolist() == own["input_ids"][0].tolist()
    assert made.encoded.token_kind.tolist() == own["mm_token_type_ids"][0].tolist()
    assert made.encoded.media_kinds == tuple(clip.kind for clip in made.clips)
    assert made.encoded.seconds_per_step == tuple(map(float, own.get("second_per_grid_ts", ())))
    for kind, pixels, grids in (("image", "pixel_values", "image_grid_thw"), ("video", "pixel_values_videos", "video_grid_thw")):
        places = [place for place, clip in enumerate(made.clips) if clip.kind == kind]
        if places:
            assert torch.equal(made.encoded.grid_thw[places], own[grids])
            starts = made.encoded.grid_thw.prod(-1).cumsum(0) - made.encoded.grid_thw.prod(-1)
            parts = [made.encoded.patches[starts[p] : starts[p] + made.encoded.grid_thw[p].prod()] for p in places]
            assert torch.equal(torch.cat(parts), own[pixels])


@every_family
@pytest.mark.parametrize(("total", "rate", "wanted"), [(16, 8, 2), (30, 7.5, 1), (12, 4, 4), (25, 10, 2.5)])
def test_inputs_are_those_of_the_processors_whole_path(name, total, rate, wanted):
    """It samples a long video and resizes it, by its own rules; the cache's frames are what it has chosen."""
    family, processor, _ = tiny_model(name)
    side = family.grid.factor
    source = video_clip(total, 2 * side, 3 * side).frames
    record = {"fps": rate, "total_num_frames": total, "duration": total / rate}
    text = family.render(processor, Prompt(parts=(VIDEO, "What?")), ())
    sizes = {"size": {"shortest_edge": 4 * side * side, "longest_edge": 10**7}, "do_resize": True, "return_tensors": "pt"}
    sampling = {"do_sample_frames": True, "fps": wanted, "return_metadata": True}
    own = processor(text=[text], videos=[source], video_metadata=[record], **sizes, **sampling)
    chosen = [int(index) for index in own["video_metadata"][0].frames_indices]
    meta = VideoMetadata(
        fps=rate,
        total_frames=total,
        duration=total / rate,
        indices=tuple(chosen),
        times=tuple(index / rate for index in chosen),
        height=2 * side,
        width=3 * side,
        source_height=2 * side,
        source_width=3 * side,
    )
    ours = family.encode(processor, text, [Clip(frames=source[chosen], meta=meta)])
    assert ours.input_ids.tolist() == own["input_ids"][0].tolist()
    assert torch.equal(ours.patches, own["pixel_values_videos"])
    assert torch.equal(ours.grid_thw, own["video_grid_thw"])
    assert ours.seconds_per_step == tuple(map(float, own.get("second_per_grid_ts", ())))


@every_family
@every_case
def test_a_length_is_known_without_pixels(name, case):
    made = made_up(name, case)
    shapes = [Clip(frames=torch.empty_like(clip.frames, device="meta"), meta=clip.meta) for clip in made.clips]
    assert made.family.prompt_length(made.processor, made.text, shapes) == len(made.encoded.input_ids)


@every_family
def test_visual_tokens_are_banned(name):
    family, processor, _ = tiny_model(name)
    names = processor.tokenizer.convert_ids_to_tokens(sorted(family.banned_ids(processor)))
    assert set(names) == {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>"}


@every_family
def test_a_placeholder_in_the_words_of_a_prompt_is_refused(name):
    family, processor, _ = tiny_model(name)
    with pytest.raises(ModelError, match=r"holds <\|video_pad\|>"):
        family.render(processor, Prompt(parts=(IMAGE, "a <|video_pad|> b")), ())
    with pytest.raises(ModelError, match=r"holds <\|image_pad\|>"):
        family.render(processor, Prompt(parts=("What?",), system="<|image_pad|>"), ())


@every_family
def test_media_that_the_text_does_not_name_are_refused(name):
    family, processor, _ = tiny_model(name)
    side = family.grid.factor
    text = family.render(processor, Prompt(parts=(VIDEO, "What?")), ())
    for clips in ([], [image_clip(side, side)], [video_clip(2, side, side)] * 2):
        for ask in (family.encode, family.prompt_length):
            with pytest.raises(ModelError, match=r"placeholders in the text and"):
                ask(processor, text, clips)


@every_family
def test_features_of_another_prompt_are_refused(name):
    made = made_up(name, "image")
    features = made.family.vision(made.module, made.encoded.patches, made.encoded.grid_thw)
    other = made_up(name, "images").encoded
    batch = ModelBatch(
        input_ids=other.input_ids[None], position_ids=made.family.position_ids(other)[:, None], token_kind=other.token_kind[None]
    )
    with pytest.raises(ModelError, match="11 visual tokens and 6 vision features"):
        made.family.forward(made.module, batch, features)


@every_family
def test_patches_are_embedded_as_by_the_convolution(name):
    from transformers import AutoModelForImageTextToText

    made = made_up(name, "video")
    own = AutoModelForImageTextToText.from_pretrained(tiny_folder(name)).model.visual.patch_embed
    assert own.state_dict().keys() == made.module.model.visual.patch_embed.state_dict().keys()
    with torch.no_grad():
        ours = made.module.model.visual.patch_embed(made.encoded.patches)
        torch.testing.assert_close(ours, own(made.encoded.patches), atol=1e-5, rtol=1e-5)


@every_family
def test_the_dummy_is_a_medium_of_one_token(name):
    family, _, module = tiny_model(name)
    patches, grid = family.dummy_patches(module)
    assert len(family.vision(module, patches, grid).embeds) == 1


@every_family
def test_every_block_is_a_unit_of_sharding(name):
    family, _, module = tiny_model(name)
    blocks = [*module.model.visual.blocks, *module.model.language_model.layers]
    assert {id(unit) for unit in family.shard_units(module)} == {id(block) for block in blocks}


def test_a_checkpoint_that_cuts_frames_otherwise_is_refused():
    from evr1_core.registry.loading import load_class, resolve

    with pytest.raises(ModelError, match="patch_size 14, not 16"):
        load_class(resolve("models", "qwen3_vl"))().load(str(tiny_folder("qwen2_vl")))
    with pytest.raises(ModelError, match="2 tokens_per_second, not 4"):
        load_class(resolve("models", "qwen2_5_vl"))(tokens_per_second=4).load(str(tiny_folder("qwen2_5_vl")))


def test_which_templates_open_the_reasoning():
    opened = {name: made_up(name).family.opens_thinking(made_up(name).processor) for name in FAMILIES}
    assert opened == {"qwen2_vl": False, "qwen2_5_vl": False, "qwen3_vl": False, "qwen3_5": True}
