"""Parts of tiny checkpoints: a tokenizer trained on the spot and the chat template of the Qwen vision-language families."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evr1_core.api import PatchGrid

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
TAGS = ("<think>", "</think>", "<answer>", "</answer>")  # one token each, as <think> is in the real vocabularies

INITIALIZER_RANGE = 0.1  # the default of 0.02 makes the residuals of a narrow model so weak that it learns many times slower
WORDS = r" ?\p{N}| ?[^\s\p{N}]+|\s+"  # a digit is a token of its own: numbers are read and written digit by digit
SIZES = {"width": 128, "layers": 2, "vision_width": 128, "vision_layers": 2, "vocab": 512}
HEAD_DIM = 32  # vLLM on a CPU refuses 16
SECTIONS = [6, 5, 5]  # rotary frequencies of time, height and width: half a head

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part.type == 'video' -%}<|vision_start|><|video_pad|><|vision_end|>
{%- elif part.type == 'text' -%}{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""
THINKING_TEMPLATE = CHAT_TEMPLATE.replace("assistant\n", "assistant\n<think>\n")
DEFAULT_CORPUS = (
    "What is the colour of the moving shape? Which way does it move? How many shapes are there?",
    'When is the shape visible? Answer with JSON such as {"time": [0, 1]} in seconds.',
    "0 1 2 3 4 5 6 7 8 9 <0.5 seconds> A B C D",
)


def train_tokenizer(corpus: Sequence[str], vocab_size: int = 512) -> Any:
    """A byte-level BPE tokenizer with the special tokens of the Qwen families, in the form that the Auto classes load."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    texts = [part for text in (*DEFAULT_CORPUS, *corpus) for part in _without_tags(text)]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL[1:]),
        clean_up_tokenization_spaces=False,
        model_max_length=32768,
    )


def _without_tags(text: str) -> list[str]:
    """The text between tags: a pair must not be learned across one, since the tags are tokens of their own."""
    return re.split("|".join(TAGS), text)


TOKEN_NAMES = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}


def token_ids(tokenizer: Any) -> dict[str, int]:
    """The ids that configurations name."""
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in TOKEN_NAMES.items()}


def text_config(tokenizer: Any, size: Mapping[str, int]) -> dict[str, Any]:
    """What the text parts of all families have in common: heads of 32, half as many of them for keys."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": size["width"],
        "intermediate_size": 3 * size["width"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["width"] // HEAD_DIM,
        "num_key_value_heads": max(1, size["width"] // (2 * HEAD_DIM)),
        "max_position_embeddings": 32768,
        "initializer_range": INITIALIZER_RANGE,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": SECTIONS},
    }


def vision_config(grid: PatchGrid, size: Mapping[str, int]) -> dict[str, Any]:
    """What the vision towers of all families have in common."""
    return {
        "depth": size["vision_layers"],
        "num_heads": 4,
        "patch_size": grid.patch,
        "spatial_merge_size": grid.merge,
        "temporal_patch_size": grid.temporal,
        "initializer_range": INITIALIZER_RANGE,
    }


def pixel_processors(grid: PatchGrid, video_processor: Any) -> dict[str, Any]:
    """Image and video processors, as arguments of the family's processor. All families share the class for images."""
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    pixels = {"patch_size": grid.patch, "merge_size": grid.merge, "temporal_patch_size": grid.temporal}
    scale = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return {
        "image_processor": Qwen2VLImageProcessor(**pixels, **scale),
        "video_processor": video_processor(**pixels, **scale),
    }


def save(folder: Path, model: Any, processor: Any) -> None:
    """Writes what the Auto classes load, with the end and padding ids that the real checkpoints name."""
    tokenizer = processor.tokenizer
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
