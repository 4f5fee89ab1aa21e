"""evr1: reinforcement learning of video-language models, as a thin core and plugins."""

from evr1_core import _torchvision

__version__ = "0.1.0"

_torchvision.install()
