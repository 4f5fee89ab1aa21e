"""Everything a run needs, built from its settings in an order that finds bad input before anything heavy is loaded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import frozen

from evr1_core.api import (
    Algorithm,
    ConfigError,
    DataError,
    ModelError,
    ModelFamily,
    PluginLoadError,
    Reward,
    RolloutEngine,
    Sample,
)
from evr1_core.cache.bad import bad_metrics, find_bad, without_bad
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import DataConfig, RolloutConfig, RunConfig
from evr1_core.data.prompts import PromptTemplates
from evr1_core.data.records import read_samples
from evr1_core.registry.catalog import Catalog, PluginRef
from evr1_core.registry.hooks import Hooks
from evr1_core.registry.loading import build_plugin, load_class, resolve
from evr1_core.rollout.boxes import expected_space
from evr1_core.rollout.lengths import find_long, long_metrics, without_long
from evr1_core.rollout.preflight import preflight
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scorer

Counts = dict[str, float]  # for the trackers


@frozen(kw_only=True)
class Records:
    """The samples of a run."""

    train: list[Sample]
    val: list[Sample]


def read_records(config: RunConfig, hooks: Hooks) -> Records:
    """Training and validation samples, without those that listeners drop. Raises DataError with all bad rows of both."""
    problems: list[str] = []
    found: dict[str, list[Sample]] = {"train": [], "val": []}
    for split, files in (("train", config.data.train), ("val", config.data.val)):
        try:
            found[split] = read_samples(files, config.data, split=split)
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return Records(train=without_dropped(found["train"], "train", hooks), val=without_dropped(found["val"], "val", hooks))


def without_dropped(samples: list[Sample], split: str, hooks: Hooks) -> list[Sample]:
    """The samples of a split that no listener drops."""
    dropped = set().union(*hooks.call("evr1_drop_samples", samples=samples, split=split))
    return [sample for sample in samples if sample.uid not in dropped]


def build_scorer(config: RunConfig, opens_thinking: bool) -> Scorer:
    """The chosen rewards, routed."""
    rewards: dict[str, Reward] = {
        name: build_plugin("rewards", name, choice.options, place=f"rewards.{name}") for name, choice in config.rewards.items()
    }
    return Scorer(
        rewards,
        config.rewards,
        config.reward,
        opens_thinking=opens_thinking,
        max_tokens=config.rollout.max_response_tokens,
        distributions={name: resolve("rewards", name).origin for name in rewards},
        allow_bad_gold=config.data.allow_bad_gold,
    )


def build_algorithm(config: RunConfig) -> Algorithm:
    """The chosen algorithm. Raises ConfigError when a prompt gets fewer responses than it needs."""
    algorithm: Algorithm = build_plugin("algorithms", config.algorithm.name, config.algorithm.options, place="algorithm")
    if algorithm.rollouts and config.rollout.n < algorithm.min_group:
        raise ConfigError(
            [f"rollout.n: {config.algorithm.name} needs {algorithm.min_group} or more responses; is {config.rollout.n}"]
        )
    return algorithm


def find_family(config: RunConfig) -> ModelFamily:
    """The family plugin that the settings name, or the one that serves the checkpoint's ``model_type``."""
    choice = config.model.family
    if choice.name:
        return cast(ModelFamily, build_plugin("models", choice.name, choice.options, place="model.family"))
    model_type = read_model_type(config.model.path)
    refs = Catalog.scan().group("models")
    broken: list[str] = []
    serving = [ref for ref in refs if _serves(ref, model_type, broken)]
    if len(serving) != 1:
        known = ", ".join([*sorted({ref.name for ref in refs}), *broken])
        found = f"{len(serving)} families serve" if serving else "no installed family serves"
        raise ModelError(f"{config.model.path}: {found} model_type {model_type!r}; name one as model.family (installed: {known})")
    ref = serving[0]
    return cast(ModelFamily, build_plugin("models", f"{ref.dist}/{ref.name}", choice.options, place="model.family"))


def sharing_notes(config: RunConfig, family: ModelFamily) -> list[str]:
    """What there is to say where prompts are computed once for each response, though the settings ask for once."""
    if not config.train.share_prefix or family.shared_prefix:
        return []
    return [f"train.share_prefix: {type(family).__name__} computes prompts anew for every response: its layers keep a state"]


def _serves(ref: PluginRef, model_type: str, broken: list[str]) -> bool:
    """The family serves the model type. One that cannot be loaded ends only runs that ask for it; why goes into ``broken``."""
    try:
        return model_type in load_class(ref).model_types
    except PluginLoadError as error:
        broken.append(str(error))
        return False


def read_model_type(folder: str) -> str:
    """``model_type`` of a checkpoint folder. Raises ModelError when it is none."""
    path = Path(folder) / "config.json"
    if not Path(folder).is_dir():
        raise ModelError(f"model.path: there is no folder {folder}; nothing is downloaded, so it must be a local checkpoint")
    if not path.is_file():
        raise ModelError(f"model.path: {folder} holds no config.json, so it is no Hugging Face checkpoint")
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelError(f"{path}: names no model_type")
    return cast(str, config["model_type"])


def load_processor(folder: str) -> Any:
    """The checkpoint's processor, from disk alone. Raises ModelError, saying what is missing."""
    from transformers import AutoProcessor
    from transformers.utils import logging

    logging.set_verbosity_error()  # advice about resizing and sampling, which the cache has done already
    logging.disable_progress_bar()
    present = {path.name for path in Path(folder).iterdir()}
    if not present & {"processor_config.json", "preprocessor_config.json"}:
        raise ModelError(f"model.path: {folder} holds no processor (processor_config.json or preprocessor_config.json)")
    if not present & {"tokenizer.json", "vocab.json", "tokenizer_config.json"}:
        raise ModelError(f"model.path: {folder} holds no tokenizer (tokenizer.json)")
    try:
        processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ModelError(f"model.path: the processor in {folder} cannot be loaded: {error}") from error
    if not getattr(processor, "chat_template", None):
        raise ModelError(f"model.path: the processor in {folder} has no chat template (chat_template.jinja)")
    return processor


def load_model(config: RunConfig, family: ModelFamily, folder: str = "", *, dtype: str = "") -> Any:
    """The module of a checkpoint, ``model.path`` unless another is named, in ``dtype`` or that of the settings. Raises ModelError
    when its weights cannot be read."""
    folder = folder or config.model.path
    try:
        return family.load(folder, dtype=dtype or config.model.dtype)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"the model in {folder} cannot be loaded: {error}") from error


def build_cache(config: RunConfig, family: ModelFamily) -> FrameCache:
    """The frame cache of a run; it lies beside the run folder unless it is named."""
    folder = Path(config.cache.folder) if config.cache.folder else Path(config.output).parent / "cache"
    return FrameCache(config.cache, config.frames, family.grid, media_root=Path(config.data.media_root), folder=folder)


def build_encoder(config: RunConfig, family: ModelFamily, processor: Any, clips: FrameCache) -> PromptEncoder:
    """Templates, frames and family behind one call."""
    return PromptEncoder(
        family=family,
        processor=processor,
        templates=PromptTemplates(config.data.templates, config.data.prompt_style),
        clips=clips,
        max_tokens=config.rollout.max_prompt_tokens,
    )


def check_golds(config: RunConfig, samples: Sequence[Sample], scorer: Scorer, family: ModelFamily) -> list[str]:
    """Preflight: raises DataError with every gold that does not score 1, or returns the list when the settings allow them."""
    problems = preflight(
        samples, scorer, config.data.preflight_samples, box_space=lambda sample: expected_space(family.box_kind, sample)
    )
    if problems and not config.data.allow_bad_gold:
        raise DataError([*problems, "mend these records, or train all the same with data.allow_bad_gold: true"])
    return problems


def leave_out_bad_media(records: Records, clips: FrameCache, config: DataConfig) -> tuple[Records, list[str], Counts]:
    """(records whose files can all be decoded, what was left out, counts for the trackers). Raises DataError, listing every such
    record, where the settings do not allow that."""
    bad = {"train": find_bad(records.train, clips), "val": find_bad(records.val, clips)}
    kept = Records(train=without_bad(records.train, bad["train"], config), val=without_bad(records.val, bad["val"], config))
    every = [*bad["train"], *bad["val"]]
    return kept, [f"left out: {each}" for each in every], bad_metrics([*records.train, *records.val], every) if every else {}


def leave_out_long_prompts(records: Records, encoder: PromptEncoder, config: RolloutConfig) -> tuple[Records, list[str], Counts]:
    """The same for records whose prompt has more tokens than ``rollout.max_prompt_tokens``."""
    long = {"train": find_long(records.train, encoder), "val": find_long(records.val, encoder)}
    kept = Records(train=without_long(records.train, long["train"], config), val=without_long(records.val, long["val"], config))
    every = [*long["train"], *long["val"]]
    return kept, [f"left out: {each}" for each in every], long_metrics([*records.train, *records.val], every) if every else {}


class EngineRunner:
    """Runs an engine's coroutines from synchronous code, on one event loop for its whole life."""

    def __init__(self, engine: RolloutEngine) -> None:
        self.engine = engine
        self._runner = asyncio.Runner()

    def run(self, coroutine: Any) -> Any:
        """The result of a coroutine of this engine."""
        return self._runner.run(coroutine)

    def close(self) -> None:
        """Closes the engine, then its loop."""
        try:
            self._runner.run(self.engine.close())
        finally:
            self._runner.close()


def build_engine(config: RunConfig) -> EngineRunner:
    """The chosen engine, not started."""
    choice = config.rollout.engine
    return EngineRunner(build_plugin("engines", choice.name, choice.options, place="rollout.engine"))


def as_plain(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics as plain floats, in a stable order."""
    return {name: float(metrics[name]) for name in sorted(metrics)}


def set_threads(config: RunConfig) -> None:
    """Sets torch's CPU threads, where the settings name a number."""
    if config.train.threads:
        import torch

        torch.set_num_threads(config.train.threads)
