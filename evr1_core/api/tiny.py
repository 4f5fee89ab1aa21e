"""Parts of tiny checkpoints, for model families to write theirs: a tokenizer trained on the spot, a chat template, saving."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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

WORDS = r" ?\p{N}| ?[^\s\p{N}]+|\s+"  # a digit is a token of its own: numbers are read and written digit by digit

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
    """A byte-level BPE tokenizer with the special tokens above, in the form that the Auto classes load."""
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


def save(folder: Path, model: Any, processor: Any) -> None:
    """Writes what the Auto classes load, with the end and padding ids that the real checkpoints name."""
    tokenizer = processor.tokenizer
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
