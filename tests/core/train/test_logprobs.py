"""Log-probabilities and entropies of given tokens, against worked numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evr1_core.train.logprobs import token_logprobs


def identity(size: int) -> nn.Linear:
    head = nn.Linear(size, size, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.eye(size))
    return head


def test_entropy_and_logprob_by_hand():
    hidden = torch.tensor([[0.2, -0.1, 0.4]], dtype=torch.float64)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([2]), temperature=1.0, banned=[])
    assert float(entropy.detach()) == pytest.approx(1.07850061, abs=1e-7)
    assert float(chosen.detach()) == pytest.approx(0.4 - float(torch.logsumexp(hidden, 1)), abs=1e-9)


def test_banned_tokens_leave_the_normaliser():
    hidden = torch.tensor([[0.2, 9.0, 0.4]], dtype=torch.float64)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([0]), temperature=2.0, banned=[1])
    p = 1 / (1 + torch.exp(torch.tensor(0.1, dtype=torch.float64)))
    assert float(chosen.detach().exp()) == pytest.approx(float(p))
    assert float(entropy.detach()) == pytest.approx(float(-p * p.log() - (1 - p) * (1 - p).log()))


def test_gradients_are_finite_beside_a_banned_token():
    hidden = torch.tensor([[0.2, 9.0, 0.4]], dtype=torch.float64, requires_grad=True)
    chosen, entropy = token_logprobs(hidden, identity(3), torch.tensor([0]), temperature=1.0, banned=[1])
    (chosen + entropy).sum().backward()
    assert torch.isfinite(hidden.grad).all()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("dtype", "limit"),
    [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)],
    ids=["float64", "float32", "bfloat16"],
)
def test_parts_give_what_all_logits_at_once_give(dtype, limit, bias):
    draw = torch.Generator().manual_seed(0)
    vocabulary, tokens, width = 301, 37, 16
    head = nn.Linear(width, vocabulary, bias=bias, dtype=dtype)
    start = torch.randn(tokens, width, generator=draw).to(dtype)
    targets = torch.randint(0, 298, (tokens,), generator=draw)
    shares = torch.randn(2, tokens, generator=draw)

    def results(chunk):
        hidden = start.clone().requires_grad_()
        head.zero_grad()
        chosen, entropy = token_logprobs(hidden, head, targets, temperature=0.7, banned=[298, 300], chunk=chunk)
        (chosen * shares[0] + entropy * shares[1]).sum().backward()
        return [chosen, entropy, hidden.grad, *(parameter.grad for parameter in head.parameters())]

    for ours, theirs in zip(results(5 * vocabulary), results(10**9), strict=True):
        assert ours.dtype == theirs.dtype
        assert float((ours - theirs).detach().abs().max()) <= limit * max(1.0, float(theirs.detach().abs().max()))


def test_the_gradients_of_parts_are_those_of_finite_differences():
    draw = torch.Generator().manual_seed(1)
    hidden = torch.randn(5, 4, dtype=torch.float64, generator=draw).requires_grad_()
    head = nn.Linear(4, 11, dtype=torch.float64)
    targets = torch.tensor([0, 3, 10, 7, 7])

    def both(hidden, weight, bias):
        from evr1_core.train.chunked import ChunkedLogprobs, Distribution

        return ChunkedLogprobs.apply(hidden, weight, bias, targets, Distribution(1.3, torch.tensor([5]), 22))

    assert torch.autograd.gradcheck(both, (hidden, head.weight, head.bias))


def test_a_frozen_head_and_a_term_that_nobody_asks_for_cost_nothing():
    head = nn.Linear(4, 50, bias=False).requires_grad_(False)
    hidden = torch.randn(6, 4, requires_grad=True)
    for place in (0, 1):
        results = []
        for chunk in (100, 10**9):
            hidden.grad = None
            token_logprobs(hidden, head, torch.arange(6), temperature=1.0, banned=[], chunk=chunk)[place].sum().backward()
            results.append(hidden.grad)
        torch.testing.assert_close(*results)
    assert head.weight.grad is None
