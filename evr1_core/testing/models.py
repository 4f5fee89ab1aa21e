"""The contract of model families, on the tiny checkpoint that the family writes itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from evr1_core.api import IMAGE, TEXT, VIDEO, Clip, Encoded, Media, ModelBatch, ModelFamily, Prompt, VideoMetadata

_IMAGE, _VIDEO = Media(kind="image", path="a.png"), Media(kind="video", path="b.mp4")
PROMPTS = {
    "text": Prompt(parts=("Which colours are there?",)),
    "image": Prompt(parts=(_IMAGE, "Which colour?")),
    "video": Prompt(parts=("What moves? ", _VIDEO)),
    "mixed": Prompt(parts=("Compare ", _IMAGE, " and ", _IMAGE, " with ", _VIDEO, ". Same colour?")),
}
CLOSE = 1e-4  # of log-probabilities in float32, between computations that differ in nothing but their order


def check_model_family(family: ModelFamily, folder: Path) -> None:
    """Writes a tiny checkpoint into ``folder``. Demands: the Auto classes load it; prompts with text, an image, a video and all
    in one have as many placeholders as features, in order, and the length that is known without pixels; a prompt gives the same
    log-probabilities alone, beside others in a padded batch, and when its last token follows from a cache; the smallest medium runs
    through the vision tower; an engine gets every medium; the head gives one logit a token id."""
    from transformers import AutoProcessor

    family.tiny(folder, seed=0)
    kind = json.loads((folder / "config.json").read_text("utf-8"))["model_type"]
    assert kind in family.model_types, f"the tiny checkpoint is a {kind!r}, the family serves {sorted(family.model_types)}"
    processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    model = family.load(str(folder)).eval()
    encoded = {name: _encoded(family, processor, prompt) for name, prompt in PROMPTS.items()}
    with torch.no_grad():
        alone = {name: _logprobs(family, model, [each])[0] for name, each in encoded.items()}
        _check_logits(encoded["mixed"], alone["mixed"])
        together = _logprobs(family, model, list(encoded.values()))
        for (name, each), theirs in zip(encoded.items(), together, strict=True):
            _close(alone[name], theirs[: len(each.input_ids)], f"the {name} prompt beside others in a padded batch")
        for name, each in encoded.items():
            _close(alone[name][-1:], _continued(family, model, each), f"the last token of the {name} prompt behind a cache")
        _check_dummy(family, model)
    assert family.shard_units(model), "no module can be sharded by itself: shard_units is empty"
    banned = family.banned_ids(processor)
    assert banned, "no banned ids: placeholders could be sampled"
    vocabulary = len(processor.tokenizer)
    assert all(0 <= each < vocabulary for each in banned), f"banned ids {sorted(banned)} are not all token ids"


def made_up_clips(family: ModelFamily) -> tuple[Clip, Clip]:
    """An image and a video of four frames, in sizes that the family's grid divides."""
    side, frames = 2 * family.grid.factor, 2 * family.grid.temporal
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (frames, 3, side, 2 * side), generator=generator, dtype=torch.uint8)
    meta = VideoMetadata(
        fps=4.0,
        total_frames=2 * frames,
        duration=frames / 2,
        indices=tuple(range(0, 2 * frames, 2)),
        times=tuple(i / 2 for i in range(frames)),
        height=side,
        width=2 * side,
        source_height=side,
        source_width=2 * side,
    )
    return Clip(frames=pixels[:1]), Clip(frames=pixels, meta=meta)


def _encoded(family: ModelFamily, processor: Any, prompt: Prompt) -> Encoded:
    image, video = made_up_clips(family)
    clips = [image if media.kind == "image" else video for media in prompt.media]
    text = family.render(processor, prompt, clips)
    encoded = family.encode(processor, text, clips)
    _check_encoded(family, encoded, prompt)
    outlines = [Clip(frames=torch.empty_like(clip.frames, device="meta"), meta=clip.meta) for clip in clips]
    length = family.prompt_length(processor, text, outlines)
    assert length == len(encoded.input_ids), f"prompt_length is {length}, the prompt has {len(encoded.input_ids)} tokens"
    given = family.engine_input(text, clips)
    named = {kind: len(media) for kind, media in given.media.items() if media}
    wanted = {media.kind: sum(each.kind == media.kind for each in prompt.media) for media in prompt.media}
    assert named == wanted, f"the engine gets media {named}, the prompt has {wanted}"
    assert given.text == text, "the engine gets another text"
    return encoded


def _check_encoded(family: ModelFamily, encoded: Encoded, prompt: Prompt) -> None:
    kinds = tuple(media.kind for media in prompt.media)
    assert encoded.media_kinds == kinds, f"media in the order {encoded.media_kinds}, not {kinds}"
    assert int((encoded.token_kind == TEXT).sum()) > 0, "no text is left"
    if kinds:
        assert encoded.grid_thw is not None, "there are media and no grids"
        assert encoded.patches is not None, "there are media and no patches"
        sizes = encoded.grid_thw.prod(dim=1)
        assert int(sizes.sum()) == len(encoded.patches), f"grids name {int(sizes.sum())} patches, there are {len(encoded.patches)}"
        for number, kind in ((IMAGE, "image"), (VIDEO, "video")):
            own = torch.tensor([each == kind for each in kinds])
            features = int(sizes[own].sum()) // family.grid.merge**2
            placeholders = int((encoded.token_kind == number).sum())
            assert placeholders == features, f"{placeholders} {kind} placeholders and {features} {kind} features"
    positions = family.position_ids(encoded)
    assert positions.shape == (3, len(encoded.input_ids)), f"position_ids has shape {tuple(positions.shape)}"


def _logprobs(family: ModelFamily, model: Any, prompts: Sequence[Encoded]) -> list[Tensor]:
    """Log-probabilities ``[S, V]`` behind every token of some prompts, computed as one batch, padded on the right."""
    lengths = torch.tensor([len(each.input_ids) for each in prompts])
    width = int(lengths.max())
    valid = torch.arange(width) < lengths.unsqueeze(1)
    causal = torch.ones(width, width, dtype=torch.bool).tril() & valid.unsqueeze(1)
    batch = ModelBatch(
        input_ids=torch.stack([_wide(each.input_ids, width) for each in prompts]),
        position_ids=torch.stack([_wide(family.position_ids(each), width) for each in prompts], dim=1),
        token_kind=torch.stack([_wide(each.token_kind, width) for each in prompts]),
        attention_mask=(causal | torch.eye(width, dtype=torch.bool)).unsqueeze(1),
        valid=valid,
    )
    hidden = family.forward(model, batch, _vision(family, model, prompts))
    assert hidden.shape[:2] == (len(prompts), width), f"hidden states have shape {tuple(hidden.shape)}"
    return list(torch.log_softmax(family.head(model)(hidden).float(), dim=-1))


def _continued(family: ModelFamily, model: Any, prompt: Encoded) -> Tensor:
    """Log-probabilities behind the last token, which follows the others from a cache."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config.get_text_config())
    positions, length = family.position_ids(prompt), len(prompt.input_ids)
    vision = _vision(family, model, [prompt])
    hidden = torch.empty(0)
    for part in (slice(0, length - 1), slice(length - 1, length)):
        seen = torch.ones(length, length, dtype=torch.bool).tril()[part, : part.stop]
        batch = ModelBatch(
            input_ids=prompt.input_ids[None, part],
            position_ids=positions[:, None, part],
            token_kind=prompt.token_kind[None, part],
            attention_mask=seen[None, None],
            cache=cache,
        )
        hidden = family.forward(model, batch, vision if part.start == 0 else None)
    return torch.log_softmax(family.head(model)(hidden[0]).float(), dim=-1)


def _vision(family: ModelFamily, model: Any, prompts: Sequence[Encoded]) -> Any:
    patches = [each.patches for each in prompts if each.patches is not None]
    grids = [each.grid_thw for each in prompts if each.grid_thw is not None]
    return family.vision(model, torch.cat(patches), torch.cat(grids)) if patches else None


def _check_logits(encoded: Encoded, logprobs: Tensor) -> None:
    assert bool(torch.isfinite(logprobs).all()), "log-probabilities are not finite"
    largest = int(encoded.input_ids.max())
    assert logprobs.shape[-1] > largest, f"{logprobs.shape[-1]} logits, and a token id {largest}"


def _check_dummy(family: ModelFamily, model: Any) -> None:
    patches, grid = family.dummy_patches(model)
    features = int(grid.prod(dim=1).sum()) // family.grid.merge**2
    found = len(family.vision(model, patches, grid).embeds)
    assert found == features, f"the dummy gives {found} features, its grid names {features}"


def _close(ours: Tensor, theirs: Tensor, what: str) -> None:
    apart = float((ours - theirs).abs().max())
    assert apart <= CLOSE, f"{what} has log-probabilities {apart:.2g} apart from those of the prompt alone"


def _wide(values: Tensor, width: int) -> Tensor:
    return pad(values, (0, width - values.shape[-1]))
