"""evr1: reinforcement learning of video-language models, as a thin core and plugins."""

__version__ = "0.1.0"
