"""The contract of model families, on the tiny checkpoint that the family writes itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from evr1_core.api import IMAGE, TEXT, VIDEO, Clip, Encoded, Media, ModelBatch, ModelFamily, Prompt, VideoMetadata

PROMPT = Prompt(
    parts=("Compare ", Media(kind="image", path="a.png"), " with ", Media(kind="video", path="b.mp4"), ". Same colour?")
)


def check_model_family(family: ModelFamily, folder: Path) -> None:
    """Writes a tiny checkpoint into ``folder``. Demands: the Auto classes load it; a prompt with an image and a video has as many
    placeholders as features, in order; positions and hidden states have the right shapes; the head gives one logit a token id."""
    from transformers import AutoProcessor

    family.tiny(folder, seed=0)
    kind = json.loads((folder / "config.json").read_text("utf-8"))["model_type"]
    assert kind in family.model_types, f"the tiny checkpoint is a {kind!r}, the family serves {sorted(family.model_types)}"
    processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    model = family.load(str(folder)).eval()
    clips = made_up_clips(family)
    encoded = family.encode(processor, family.render(processor, PROMPT, clips), clips)
    _check_encoded(family, encoded)
    with torch.no_grad():
        _check_forward(family, model, encoded)
    vocabulary = len(processor.tokenizer)
    banned = family.banned_ids(processor)
    assert banned, "no banned ids: placeholders could be sampled"
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


def _check_encoded(family: ModelFamily, encoded: Encoded) -> None:
    assert encoded.media_kinds == ("image", "video"), f"media in the order {encoded.media_kinds}"
    assert encoded.grid_thw is not None, "there are media and no grids"
    assert encoded.patches is not None, "there are media and no patches"
    sizes = encoded.grid_thw.prod(dim=1)
    assert int(sizes.sum()) == len(encoded.patches), f"grids name {int(sizes.sum())} patches, there are {len(encoded.patches)}"
    features = (sizes // family.grid.merge**2).tolist()
    counts = [int((encoded.token_kind == kind).sum()) for kind in (IMAGE, VIDEO)]
    assert counts == features, f"placeholders of image and video: {counts}, features: {features}"
    assert int((encoded.token_kind == TEXT).sum()) > 0, "no text is left"
    positions = family.position_ids(encoded)
    assert positions.shape == (3, len(encoded.input_ids)), f"position_ids has shape {tuple(positions.shape)}"


def _check_forward(family: ModelFamily, model: Any, encoded: Encoded) -> None:
    assert encoded.patches is not None
    assert encoded.grid_thw is not None
    vision = family.vision(model, encoded.patches, encoded.grid_thw)
    length = len(encoded.input_ids)
    batch = ModelBatch(
        input_ids=encoded.input_ids.unsqueeze(0),
        position_ids=family.position_ids(encoded).unsqueeze(1),
        token_kind=encoded.token_kind.unsqueeze(0),
        attention_mask=torch.ones(length, length, dtype=torch.bool).tril()[None, None],
    )
    hidden = family.forward(model, batch, vision)
    assert hidden.shape[:2] == (1, length), f"hidden states have shape {tuple(hidden.shape)}"
    logits = family.head(model)(hidden[:, -1])
    assert bool(torch.isfinite(logits).all()), "logits are not finite"
    assert logits.shape[-1] > int(encoded.input_ids.max()), (
        f"{logits.shape[-1]} logits, and a token id {int(encoded.input_ids.max())}"
    )
