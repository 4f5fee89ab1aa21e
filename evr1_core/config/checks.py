"""Checks across settings, and of what they name on disk: everything that can be told before torch is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evr1_core.api import Algorithm
from evr1_core.api.errors import ConfigError, Evr1Error, ProblemsError
from evr1_core.config.schema import RunConfig
from evr1_core.registry.loading import build_plugin


def check(config: RunConfig, *, files: bool = True) -> None:
    """Raises ConfigError with everything that keeps a run from starting. ``files`` False leaves out what must exist on disk."""
    problems = [*_missing(config), *_contradictions(config)]
    if files:
        problems += _files(config)
    algorithm = None
    for group, name, options, place in _plugins(config):
        try:
            plugin = build_plugin(group, name, options, place=place)
        except ProblemsError as error:
            problems += error.problems
        except Evr1Error as error:
            problems.append(str(error))
        else:
            algorithm = plugin if group == "algorithms" else algorithm
    if algorithm is not None:
        problems += _for_algorithm(config, algorithm)
    if problems:
        raise ConfigError(problems)


def _plugins(config: RunConfig) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    if config.algorithm.name:
        yield "algorithms", config.algorithm.name, config.algorithm.options, "algorithm"
    for name, choice in config.rewards.items():
        yield "rewards", name, choice.options, f"rewards.{name}"
    for tracker in config.log.trackers:
        yield "trackers", tracker.name, tracker.options, "log.trackers"


def _missing(config: RunConfig) -> Iterator[str]:
    needed = {
        "algorithm": (config.algorithm.name, "--algo"),
        "model.path": (config.model.path, "--model"),
        "data.train": (config.data.train, "--train"),
    }
    for key, (value, flag) in needed.items():
        if not value:
            yield f"{key}: must be given, in the configuration file or by {flag}"
    if config.data.val and not config.rewards:
        yield "rewards: must be given, by --rewards too, to score the validation records"


def _contradictions(config: RunConfig) -> Iterator[str]:
    frames, reward = config.frames, config.reward
    if frames.video_min_frames > frames.video_max_frames:
        yield f"frames.video_min_frames: {frames.video_min_frames} is more than video_max_frames = {frames.video_max_frames}"
    for kind in ("video", "image"):
        low, high = getattr(frames, f"{kind}_min_pixels"), getattr(frames, f"{kind}_max_pixels")
        if low is not None and low > high:
            yield f"frames.{kind}_min_pixels: {low} is more than {kind}_max_pixels = {high}"
    if not reward.accuracy_weight and not reward.format_weight:
        yield "reward.accuracy_weight: one of accuracy_weight and format_weight must be above 0"
    if reward.overlong_buffer >= config.rollout.max_response_tokens:
        yield "reward.overlong_buffer: must be below rollout.max_response_tokens"
    if config.rollout.top_p < 1 or config.rollout.top_k > 0:
        yield (
            "rollout.top_p: training needs samples of the whole distribution (top_p 1, top_k -1): "
            "log-probabilities of a truncated one do not compare with the trainer's"
        )


def _for_algorithm(config: RunConfig, algorithm: Algorithm) -> Iterator[str]:
    name = config.algorithm.name
    if not algorithm.rollouts:
        return
    if not config.rewards:
        yield f"rewards: must be given, by --rewards too: {name} learns from rewards"
    if config.rollout.n < algorithm.min_group:
        yield f"rollout.n: {name} compares the responses to a prompt and needs {algorithm.min_group} or more; is {config.rollout.n}"


def _files(config: RunConfig) -> Iterator[str]:
    for key, files in (("data.train", config.data.train), ("data.val", config.data.val)):
        for file in files:
            if not Path(file).is_file():
                yield f"{key}: there is no file {file}"
    for key, folder in (("data.media_root", config.data.media_root), ("data.templates", config.data.templates)):
        if folder and not Path(folder).is_dir():
            yield f"{key}: there is no folder {folder}"
    path = Path(config.model.path)
    if config.model.path and not (path / "config.json").is_file():
        yield f"model.path: {path} is no checkpoint folder (config.json is missing); nothing is downloaded"
