"""Checks across settings, of the plugins they name, and of files: everything that can be told before a model is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from evr1_core.api import Algorithm
from evr1_core.api.errors import ConfigError
from evr1_core.config.build import located
from evr1_core.config.choices import built, touches
from evr1_core.config.convert import index
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import Loaded, resolved

Finding = tuple[str, str]  # dotted key, what is wrong


def check(loaded: Loaded, *, files: bool = True, trains: bool = True) -> RunConfig:
    """The settings, once nothing keeps a run from starting. Raises ConfigError with everything that does.

    ``files`` False leaves out what must exist on disk; ``trains`` False what only training needs: algorithm, data, run folder.
    """
    config = loaded.config
    problems = [problem.text for problem in loaded.problems]
    broken = [problem.path for problem in loaded.problems]
    plugins = built(loaded, broken)
    problems += plugins.problems
    found = [
        *_missing(config, plugins.algorithm, trains),
        *_contradictions(config),
        *(_for_algorithm(config, plugins.algorithm, plugins.instance) if trains else ()),
    ]
    if files and trains:
        found += _files_of_training(config)
    if files:
        found += _files(config)
    for key, reason in found:
        path = tuple(key.split("."))
        if not any(touches(path, other) for other in broken):  # a setting with a problem has its default, which says nothing
            problems.append(located(path, reason, loaded.origins))
    if problems:
        raise ConfigError(problems)
    return config


def _missing(config: RunConfig, algorithm: type[Algorithm] | None, trains: bool) -> Iterator[Finding]:
    unrewarded = trains and algorithm is not None and not algorithm.rollouts and not config.data.val
    needed = {
        "algorithm": (config.algorithm.name or not trains, "--algo"),
        "model.path": (config.model.path, "--model"),
        "data.train": (config.data.train or not trains, "--train"),
        "rewards": (config.rewards or unrewarded, "--rewards"),
    }
    for key, (value, flag) in needed.items():
        if not value:
            yield key, f"must be given, by {flag} or in the configuration file"
    for number, tracker in enumerate(config.log.trackers):
        if not tracker.name:
            yield f"log.trackers.{index(number)}.name", "must be given"
    if not config.rollout.engine.name:
        yield "rollout.engine.name", "must be given"


def _contradictions(config: RunConfig) -> Iterator[Finding]:
    frames, reward, rollout, train = config.frames, config.reward, config.rollout, config.train
    if frames.video_min_frames > frames.video_max_frames:
        yield "frames.video_min_frames", f"is {frames.video_min_frames}, more than video_max_frames = {frames.video_max_frames}"
    for kind in ("video", "image"):
        low, high = getattr(frames, f"{kind}_min_pixels"), getattr(frames, f"{kind}_max_pixels")
        if low is not None and low > high:
            yield f"frames.{kind}_min_pixels", f"is {low}, more than {kind}_max_pixels = {high}"
    if not reward.accuracy_weight and not reward.format_weight:
        yield "reward.accuracy_weight", "one of accuracy_weight and format_weight must be above 0"
    if reward.fallback and reward.fallback not in config.rewards:
        yield "reward.fallback", f"{reward.fallback!r} is not among the chosen rewards ({', '.join(config.rewards) or 'none'})"
    if reward.overlong_buffer >= rollout.max_response_tokens:
        yield "reward.overlong_buffer", f"must be below rollout.max_response_tokens = {rollout.max_response_tokens}"
    if config.kl.place != "off" and config.kl.kind == "full":
        yield (
            "kl.kind",
            "full needs the logits of both models at every token, which a run does not keep; k2, k1+ and k3+ in the loss have the "
            "same gradient on average",
        )
    if config.lora.enabled and find_spec("peft") is None:
        yield "lora.rank", "adapters need peft: pip install 'evr1[lora]'"
    if config.correction.low is not None and config.correction.low > config.correction.high:
        yield "correction.low", f"is {config.correction.low}, more than correction.high = {config.correction.high}"
    if config.filter.low is not None and config.filter.high is not None and config.filter.low >= config.filter.high:
        yield "filter.low", f"must be below filter.high = {config.filter.high}; is {config.filter.low}"
    if rollout.top_p < 1 or rollout.top_k > 0:
        yield (
            "rollout.top_p" if rollout.top_p < 1 else "rollout.top_k",
            "training needs samples of the whole distribution (top_p 1, top_k -1): "
            "log-probabilities of a truncated one do not compare with the trainer's",
        )
    if train.prompts_per_update and train.prompts_per_update > train.prompts_per_step:
        yield "train.prompts_per_update", f"is {train.prompts_per_update}, more than prompts_per_step = {train.prompts_per_step}"
    if config.val.every and not config.data.val:
        yield "data.val", f"must be given: val.every = {config.val.every} asks for validation"


def _for_algorithm(config: RunConfig, algorithm: type[Algorithm] | None, instance: Algorithm | None) -> Iterator[Finding]:
    if algorithm is not None and algorithm.rollouts and config.rollout.n < algorithm.min_group:
        yield (
            "rollout.n",
            f"{config.algorithm.name} compares the responses to a prompt and needs {algorithm.min_group} or more; "
            f"is {config.rollout.n}",
        )
    if algorithm is not None and not algorithm.rollouts:
        yield from _without_rollouts(config)
    if instance is not None:
        yield from instance.contradictions(resolved(config))


def _without_rollouts(config: RunConfig) -> Iterator[Finding]:
    name = config.algorithm.name
    if config.kl.place == "reward":
        yield "kl.place", f"{name} has no rewards that a penalty could be taken off; use loss"
    if config.filter.dynamic:
        yield "filter.dynamic", f"{name} samples nothing, so there are no accuracies to filter by"
    if config.mix.enabled:
        yield "mix.enabled", f"{name} samples nothing that stored trajectories could be mixed with"


def _files(config: RunConfig) -> Iterator[Finding]:
    for key, folder in (("data.media_root", config.data.media_root), ("data.templates", config.data.templates)):
        if folder and not Path(folder).is_dir():
            yield key, f"there is no folder {folder}"
    if config.lora.start and not (Path(config.lora.start) / "adapter_config.json").is_file():
        yield "lora.start", f"{config.lora.start} holds no adapter (adapter_config.json is missing)"
    path = Path(config.model.path)
    if config.model.path and not (path / "config.json").is_file():
        yield "model.path", f"{path} is no checkpoint folder (config.json is missing); nothing is downloaded"


def _files_of_training(config: RunConfig) -> Iterator[Finding]:
    for key, files in (("data.train", config.data.train), ("data.val", config.data.val)):
        for number, file in enumerate(files):
            if not Path(file).is_file():
                yield f"{key}.{index(number)}", f"there is no file {file}"
    output = Path(config.output)
    if config.output and (output / "model").exists():
        yield "output", f"{output} holds a finished run; choose another folder"
    elif config.output and output.exists() and not output.is_dir():
        yield "output", f"{output} is no folder"
