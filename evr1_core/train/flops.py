"""Floating-point operations of a training step, and the share of a device's peak that they are."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

# dense bfloat16, in 10^12 operations a second
PEAK_TFLOPS = {
    "H100": 989.0,
    "H800": 989.0,
    "H200": 989.0,
    "A100": 312.0,
    "A800": 312.0,
    "H20": 148.0,
    "L40S": 362.0,
    "B200": 2250.0,
}


@frozen(kw_only=True)
class DecoderShape:
    """Sizes of a decoder: hidden and feed-forward width, layers, query and key/value heads, head width, vocabulary."""

    hidden: int
    inter: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int


@frozen(kw_only=True)
class StepFlops:
    """Operations of a forward and backward pass: matrix products of the layers and the head, and causal attention."""

    linear: float
    attention: float

    @property
    def total(self) -> float:
        """Both together; a forward pass alone is a third."""
        return self.linear + self.attention


def step_flops(shape: DecoderShape, lengths: Sequence[int]) -> StepFlops:
    """Operations on rows of these lengths. The embedding is a look-up, not a product; the vision tower is not counted."""
    s = shape
    attention_weights = s.hidden * (s.heads * s.head_dim + 2 * s.kv_heads * s.head_dim) + s.heads * s.head_dim * s.hidden
    weights = s.layers * (attention_weights + 3 * s.hidden * s.inter) + s.vocab * s.hidden
    squares = sum(length * length for length in lengths)
    return StepFlops(linear=6.0 * weights * sum(lengths), attention=6.0 * s.layers * s.heads * s.head_dim * squares)


def utilisation(flops: float, seconds: float, devices: int, peak_tflops: float) -> float:
    """Model FLOPs utilisation: the share of what the devices could have done in that time."""
    return flops / (seconds * devices * peak_tflops * 1e12)


def peak_of(device: str) -> float | None:
    """Peak of a device by the name that its driver gives, in 10^12 operations a second; None for one that is not known."""
    words = device.upper().replace("-", " ").split()
    return next((peak for name, peak in PEAK_TFLOPS.items() if name in words), None)
