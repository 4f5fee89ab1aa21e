"""The unit of data: one prompt with its media once, and its n responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from evr1_core.api import BoxSpace, Clip, Encoded, ModelError, ModelFamily, Prompt, Rollout, Sample
from evr1_core.api.processing import grid_of
from evr1_core.rollout.boxes import prediction_space

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True, eq=False)
class EncodedPrompt:
    """A sample as the model takes it; ``position_ids`` int64 ``[3, S]``; ``boxes``: the space that the model writes boxes in;
    ``banned``: ids that no response may hold."""

    sample: Sample
    text: str
    clips: tuple[Clip, ...]
    encoded: Encoded
    position_ids: Tensor
    boxes: BoxSpace | None = None
    banned: frozenset[int] = frozenset()

    @property
    def num_tokens(self) -> int:
        """Tokens of the prompt, visual ones included."""
        return len(self.encoded.input_ids)


@frozen(kw_only=True, eq=False)
class Response:
    """One response of a group. ``token_ids`` include the end token when there is one. ``logprobs``: the engine's. ``offline``: a
    stored trajectory; ``recorded``: the log-probabilities stored with it, None without any."""

    text: str
    token_ids: tuple[int, ...]
    truncated: bool
    logprobs: tuple[float, ...] | None = None
    offline: bool = False
    recorded: tuple[float, ...] | None = None


@define(kw_only=True, eq=False)
class Group:
    """One prompt and its responses."""

    prompt: EncodedPrompt
    responses: list[Response] = field(factory=list)


def encode_prompt(
    family: ModelFamily, processor: Any, sample: Sample, prompt: Prompt, clips: Sequence[Clip], max_tokens: int
) -> EncodedPrompt:
    """Text, token ids, patches and positions of one sample.

    Raises ModelError when placeholders and features differ in number, or the processor has cut the frames otherwise than the cache
    sized them, and when the prompt is longer than ``max_tokens``: a cut could fall inside a visual span.
    """
    with naming(sample):
        text = family.render(processor, prompt, clips)
        encoded = family.encode(processor, text, clips)
        _check_features(family, encoded, clips)
    if len(encoded.input_ids) > max_tokens:
        raise ModelError(
            f"{sample.origin or sample.uid}: the prompt of {sample.uid!r} has {len(encoded.input_ids)} tokens, "
            f"more than rollout.max_prompt_tokens = {max_tokens}; raise it, or lower the frames or pixels in `frames`"
        )
    return EncodedPrompt(
        sample=sample,
        text=text,
        clips=tuple(clips),
        encoded=encoded,
        position_ids=family.position_ids(encoded),
        boxes=prediction_space(family.box_kind, clips),
        banned=family.banned_ids(processor),
    )


@contextmanager
def naming(sample: Sample) -> Iterator[None]:
    """Puts the record before what a model family says about its prompt."""
    try:
        yield
    except ModelError as error:
        place = f"{sample.origin}: " if sample.origin else ""
        raise ModelError(f"{place}record {sample.uid!r}: {error}") from error


def _check_features(family: ModelFamily, encoded: Encoded, clips: Sequence[Clip]) -> None:
    grids = [] if encoded.grid_thw is None else [tuple(grid) for grid in encoded.grid_thw.tolist()]
    sized = [grid_of(clip, family.grid) for clip in clips]
    if grids != sized:
        raise ModelError(f"the processor has cut the media into grids {grids}, the cache has sized them for {sized}")
    for number, kind in enumerate(("image", "video"), start=1):
        own = [grid for grid, medium in zip(grids, encoded.media_kinds, strict=True) if medium == kind]
        features = sum(t * h * w for t, h, w in own) // family.grid.merge**2
        placeholders = int((encoded.token_kind == number).sum())
        if features != placeholders:
            raise ModelError(f"{placeholders} {kind} placeholders and {features} {kind} features (grids {own})")


def check_sampled(prompt: EncodedPrompt, rollouts: Sequence[Rollout]) -> None:
    """Raises ModelError when a response holds a banned id: behind it, placeholders and features differ in number."""
    for rollout in rollouts:
        found = prompt.banned.intersection(rollout.token_ids)
        if found:
            grids = None if prompt.encoded.grid_thw is None else prompt.encoded.grid_thw.tolist()
            count = sum(token in found for token in rollout.token_ids)
            with naming(prompt.sample):
                raise ModelError(
                    f"the engine has sampled {count} tokens of {sorted(found)}, which stand for media and are banned; "
                    f"the prompt's own placeholders belong to grids {grids}"
                )


def sampled(rollout: Rollout) -> Response:
    """A response from an engine's rollout."""
    return Response(text=rollout.text, token_ids=rollout.token_ids, truncated=rollout.finish == "length", logprobs=rollout.logprobs)


def offline_response(
    sample: Sample, tokenizer: Any, eos_ids: Sequence[int], banned_ids: frozenset[int], max_tokens: int
) -> Response:
    """The stored trajectory of a sample: tokenised without special tokens, ended, and cut at the limit. Raises ModelError when it
    holds an id that is banned from sampling."""
    assert sample.offline is not None
    ids = tokenizer(sample.offline, add_special_tokens=False)["input_ids"]
    if banned_ids.intersection(ids):
        raise ModelError(
            f"{sample.origin or sample.uid}: the stored trajectory of {sample.uid!r} holds an image, video or vision token"
        )
    row, _ = offline_row(ids, eos_ids, len(ids) + 1)
    recorded = sample.offline_logprobs
    if recorded and len(recorded) != len(row):
        raise ModelError(
            f"{sample.origin or sample.uid}: the stored trajectory of {sample.uid!r} has {len(row)} tokens, "
            f"its end token included, and {len(recorded)} recorded log-probabilities; record them with this tokenizer"
        )
    return Response(
        text=sample.offline,
        token_ids=tuple(row[:max_tokens]),
        truncated=len(row) > max_tokens,
        offline=True,
        recorded=recorded[:max_tokens] or None,
    )


def offline_row(ids: Sequence[int], eos_ids: Sequence[int], max_tokens: int) -> tuple[list[int], bool]:
    """(token ids up to and including the first end id, cut off). The primary end id is appended when none occurs."""
    ids = list(ids)
    ends = [place for place, token in enumerate(ids) if token in eos_ids]
    ids = ids[: ends[0] + 1] if ends else [*ids, eos_ids[0]]
    return ids[:max_tokens], len(ids) > max_tokens


def mixed(group: Group, trajectory: Response) -> Group:
    """The group with the stored trajectory in its last slot."""
    return evolve(group, responses=[*group.responses[:-1], trajectory])
