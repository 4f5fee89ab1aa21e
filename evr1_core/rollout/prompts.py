"""From a sample to what the model takes: template, frames, token ids, positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from attrs import frozen

from evr1_core.api import Clip, Media, ModelFamily, Prompt, Sample
from evr1_core.rollout.groups import EncodedPrompt, encode_prompt, naming


class Templates(Protocol):
    """What turns a sample into a prompt."""

    def prompt(self, sample: Sample) -> Prompt: ...


class Clips(Protocol):
    """Where decoded media come from; an outline is a clip without its pixels."""

    def clip(self, media: Media) -> Clip: ...

    def outline(self, media: Media) -> Clip: ...


@frozen(kw_only=True, eq=False)
class PromptEncoder:
    """Encodes samples, one after the other, with the media of each decoded at most once."""

    family: ModelFamily
    processor: Any
    templates: Templates
    clips: Clips
    max_tokens: int

    def encode(self, samples: Sequence[Sample]) -> list[EncodedPrompt]:
        """The prompts of ``samples``, in order. Raises MediaError and ModelError, which name the file or the sample."""
        return [self._encode(sample) for sample in samples]

    def length(self, sample: Sample) -> int:
        """Tokens of a sample's prompt, visual ones included; no pixel is read. Raises as ``encode`` does."""
        prompt = self.templates.prompt(sample)
        outlines = [self.clips.outline(media) for media in prompt.media]
        with naming(sample):
            text = self.family.render(self.processor, prompt, outlines)
            return self.family.prompt_length(self.processor, text, outlines)

    def _encode(self, sample: Sample) -> EncodedPrompt:
        prompt = self.templates.prompt(sample)
        clips = [self.clips.clip(media) for media in prompt.media]
        return encode_prompt(self.family, self.processor, sample, prompt, clips, self.max_tokens)
