"""Groups as model input: a prompt once, its responses behind it, each seeing the prompt and itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from attrs import evolve, frozen
from torch import Tensor
from torch.nn.functional import pad

from evr1_core.api import ModelBatch
from evr1_core.rollout.groups import EncodedPrompt, Group, Response


@frozen(kw_only=True, eq=False)
class PackedGroups:
    """Rows of groups, and the ``prompts`` of the rows.

    For each token of each response, in order: ``rows`` and ``columns`` ``[N]`` say where the hidden state stands that predicts
    it, ``targets`` ``[N]`` what it is. ``mask`` bool ``[B, T]`` marks where those N tokens stand among B responses.
    """

    batch: ModelBatch
    prompts: Sequence[EncodedPrompt]
    rows: Tensor
    columns: Tensor
    targets: Tensor
    mask: Tensor


def separate(groups: Sequence[Group]) -> list[Group]:
    """Every response with a copy of its prompt, for families whose prompts cannot be shared."""
    return [evolve(group, responses=[response]) for group in groups for response in group.responses]


def pack(groups: Sequence[Group], device: torch.device) -> PackedGroups:
    """One padded batch, a row a group. All responses of a group share one computation of its prompt."""
    lengths = [group.prompt.num_tokens + sum(len(r.token_ids) for r in group.responses) for group in groups]
    width = max(lengths)
    rows = [_row(group) for group in groups]
    batch = ModelBatch(
        input_ids=torch.stack([pad(ids, (0, width - len(ids))) for ids, _, _ in rows]).to(device),
        position_ids=torch.stack([pad(positions, (0, width - positions.shape[1])) for _, positions, _ in rows], dim=1).to(device),
        token_kind=torch.stack([_kinds(group.prompt, width) for group in groups]).to(device),
        attention_mask=torch.stack([_visible(segments, width) for _, _, segments in rows]).unsqueeze(1).to(device),
    )
    places = [(row, column) for row, group in enumerate(groups) for column in _predictors(group)]
    responses = [response for group in groups for response in group.responses]
    return PackedGroups(
        batch=batch,
        prompts=[group.prompt for group in groups],
        rows=torch.tensor([row for row, _ in places], device=device),
        columns=torch.tensor([column for _, column in places], device=device),
        targets=torch.tensor([token for response in responses for token in response.token_ids], device=device),
        mask=response_mask(responses, device),
    )


def response_mask(responses: Sequence[Response], device: torch.device | str = "cpu") -> Tensor:
    """bool ``[B, T]``: True on every token of a response, its end token included."""
    lengths = torch.tensor([len(response.token_ids) for response in responses], device=device)
    return torch.arange(int(lengths.max()), device=device) < lengths.unsqueeze(1)


def _row(group: Group) -> tuple[Tensor, Tensor, Tensor]:
    """(token ids ``[L]``, positions ``[3, L]``, segment of each token ``[L]``: 0 prompt, i the i-th response)."""
    prompt = group.prompt
    following = int(prompt.position_ids.max()) + 1
    ids, positions, segments = [prompt.encoded.input_ids], [prompt.position_ids], [torch.zeros(prompt.num_tokens, dtype=torch.long)]
    for number, response in enumerate(group.responses, start=1):
        length = len(response.token_ids)
        ids.append(torch.tensor(response.token_ids, dtype=torch.long))
        positions.append((torch.arange(length) + following).expand(3, -1))
        segments.append(torch.full((length,), number))
    return torch.cat(ids), torch.cat(positions, dim=1), torch.cat(segments)


def _visible(segments: Tensor, width: int) -> Tensor:
    """bool ``[S, S]``: a token sees the prompt and its own segment, up to itself. Padding sees itself: no row may be empty."""
    length = len(segments)
    same = (segments.unsqueeze(1) == segments) | (segments == 0)
    visible = torch.eye(width, dtype=torch.bool)
    visible[:length, :length] |= same.tril()
    return visible


def _kinds(prompt: EncodedPrompt, width: int) -> Tensor:
    return pad(prompt.encoded.token_kind, (0, width - prompt.num_tokens))


def _predictors(group: Group) -> list[int]:
    """Column of the hidden state that predicts each response token: the prompt's last token for the first one of every response."""
    columns: list[int] = []
    start = group.prompt.num_tokens
    for response in group.responses:
        length = len(response.token_ids)
        columns += [group.prompt.num_tokens - 1, *range(start, start + length - 1)]
        start += length
    return columns
