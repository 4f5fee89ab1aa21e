"""``evr1 run``: one training run from its settings to a folder that the Auto classes load."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import evolve

from evr1_core.api import Algorithm, DataError, Evr1Error, Sample, Tracker
from evr1_core.config.manifest import write_manifest
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import resolved
from evr1_core.data.sampler import EpochSampler
from evr1_core.registry.hooks import Hooks, load_hooks
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.alarms import Alarms
from evr1_core.rollout.collect import Mixer
from evr1_core.train import session
from evr1_core.train.critic import Critic
from evr1_core.train.dump import response_rows
from evr1_core.train.loop import Models, Trainer
from evr1_core.train.policy import Policy
from evr1_core.train.ranks import Ranks, join, leave
from evr1_core.train.reference import Reference
from evr1_core.train.renew import RenewedEngine
from evr1_core.train.split import Work, split_hooks
from evr1_core.train.validate import val_sampling, validate

MODEL = "model"  # folder, in the run folder, that the next run can name as model.path


def run(config: RunConfig) -> Path:
    """Trains, and returns the run folder. Raises Evr1Error for bad input, before anything is written where that can be told.

    Each of the processes that torchrun starts calls it and does its part; one of them writes and reports.
    """
    ranks = join(config.sharding.timeout)
    try:
        output = ranks.led(lambda: config.output)  # one folder, also where its name was made from the time
        return _run(evolve(config, output=output), ranks)
    finally:
        leave(ranks)


def _run(config: RunConfig, ranks: Ranks) -> Path:
    folder = Path(config.output)
    if (folder / MODEL).exists():
        raise Evr1Error(f"output: {folder} holds a finished run; choose another folder")
    hooks = split_hooks(load_hooks(config.plugins.strict), ranks)
    records = session.read_records(config, hooks)
    if not records.train:
        raise DataError(["data.train: no sample is left to train on"])
    family = session.find_family(config)
    processor = session.load_processor(config.model.path)
    algorithm = session.build_algorithm(config)
    scorer = session.build_scorer(config, family.opens_thinking(processor))
    notes = [*hooks.notes, *session.sharing_notes(config, family)]
    if config.rewards:
        notes += session.check_golds(config, [*records.train, *records.val], scorer, family)
    _need_trajectories(records.train, algorithm)
    clips = session.build_cache(config, family)
    with ranks.one_first():
        records, left_out, counts = session.leave_out_bad_media(records, clips, config.data)
    notes += left_out
    encoder = session.build_encoder(config, family, processor, clips)
    records, too_long, more = session.leave_out_long_prompts(records, encoder, config.rollout)
    if not records.train:
        raise DataError(["data.train: no sample is left to train on: all prompts are longer than rollout.max_prompt_tokens"])
    notes += too_long
    counts |= more
    engine = session.build_engine(config)
    trackers = [_tracker(choice.name, choice.options) for choice in config.log.trackers] if ranks.leads else []
    sampler = EpochSampler(len(records.train), config.train.prompts_per_step, seed=config.train.seed, shuffle=config.data.shuffle)
    steps = config.train.steps or max(1, config.train.epochs * len(records.train) // config.train.prompts_per_step)
    session.set_threads(config)
    updates = steps * _updates_per_step(config)
    module = session.load_model(config, family, dtype="float32")
    policy = Policy(module, family, processor, config, total_updates=updates, ranks=ranks)
    models = _models(config, algorithm, policy, updates)
    work = Work(encoder=encoder, engine=engine.engine, scorer=scorer, policy=policy, models=models).split(ranks)
    mixer = Mixer(
        config=config.mix,
        tokenizer=processor.tokenizer,
        eos_ids=_eos_ids(module, processor),
        banned_ids=family.banned_ids(processor),
        max_tokens=config.rollout.max_response_tokens,
        scorer=work.scorer,
    )
    trainer = Trainer(
        config=config,
        algorithm=algorithm,
        policy=work.policy,
        engine=RenewedEngine(engine=work.engine, weights=policy.weights),
        encoder=work.encoder,
        scorer=work.scorer,
        mixer=mixer,
        hooks=hooks,
        models=work.models,
    )
    if ranks.leads:
        folder.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, config, notes, hooks.names)
    with _reported(hooks, trackers, engine, config, folder, steps):
        engine.run(trainer.engine.start(config.model.path, family, processor, module if ranks.size == 1 else None))
        _train(config, folder, trainer, engine, sampler, records, steps, trackers, counts)
    return folder


def _train(
    config: RunConfig,
    folder: Path,
    trainer: Trainer,
    engine: session.EngineRunner,
    sampler: EpochSampler,
    records: session.Records,
    steps: int,
    trackers: Sequence[Tracker],
    counts: dict[str, float],
) -> None:
    def draw() -> list[Sample]:
        return [records.train[index] for index in next(sampler)]

    alarms = Alarms(config.alarms)
    val = records.val[: config.val.max_samples or None]
    if val and config.val.before:
        _log(trackers, 0, _validate(engine, trainer, val, folder, 0))
    try:
        for step in range(1, steps + 1):
            metrics = engine.run(trainer.step(step, draw(), draw))
            metrics |= {"training/global_step": float(step), "training/epoch": float(sampler.epoch)} | counts
            if val and (step == steps or (config.val.every and step % config.val.every == 0)):
                metrics |= _validate(engine, trainer, val, folder, step)
            _log(trackers, step, metrics)
            trainer.hooks.call("evr1_step_ended", step=step, metrics=metrics)
            if config.log.samples_every and step % config.log.samples_every == 0:
                rows = response_rows(trainer.last_groups[: config.log.samples], trainer.last_scores)
                for tracker in trackers:
                    tracker.rows(step, "responses", rows)
            _heed(alarms, trainer, metrics, config)
    finally:
        error = sys.exc_info()[1]  # what one process alone has met leaves it without the shards of the others
        if trainer.policy.ranks.size == 1 or error is None or isinstance(error, Evr1Error):
            _save(trainer, folder)  # also after Ctrl-C or an alarm: what was learned is kept
    trainer.hooks.call("evr1_checkpoint_saved", step=steps, folder=folder / MODEL)


def _heed(alarms: Alarms, trainer: Trainer, metrics: dict[str, float], config: RunConfig) -> None:
    """Warns or stops when nothing can be learned any more."""
    if not trainer.algorithm.rollouts:
        return
    groups = len(trainer.last_groups)
    message = alarms.update(
        spread_groups=round(groups * (1 - metrics["group/zero_std_frac"])),
        groups=groups,
        parsed=1 - metrics.get("response/unparsed_ratio", 0.0),
        truncated=metrics.get("response_length/clip_ratio", 0.0),
        mismatch=metrics.get("rollout_corr/logprob_diff_mean", 0.0),
    )
    if message and config.alarms.action == "stop":
        raise Evr1Error(f"step {int(metrics['training/global_step'])}: {message}")
    if message:
        warnings.warn(message, stacklevel=2)


def _validate(
    engine: session.EngineRunner, trainer: Trainer, samples: Sequence[Sample], folder: Path, step: int
) -> dict[str, float]:
    sampling = val_sampling(trainer.config)
    result = engine.run(validate(trainer.engine, trainer.encoder, trainer.scorer, samples, sampling))
    if trainer.policy.ranks.leads:
        path = folder / "validation" / f"step-{step}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in result.rows))
    metrics: dict[str, float] = result.metrics
    return metrics


def _save(trainer: Trainer, folder: Path) -> None:
    """Writes the model under a temporary name first: a folder named ``model`` is whole."""
    temporary = folder / f"{MODEL}.tmp"
    leads = trainer.policy.ranks.leads
    if leads:
        shutil.rmtree(temporary, ignore_errors=True)
    trainer.policy.save(temporary)
    if leads:
        temporary.rename(folder / MODEL)


@contextmanager
def _reported(
    hooks: Hooks, trackers: Sequence[Tracker], engine: session.EngineRunner, config: RunConfig, folder: Path, steps: int
) -> Iterator[None]:
    """Starts and closes trackers, listeners and engine around a run, whatever its end."""
    plain: dict[str, Any] = resolved(config)
    error: BaseException | None = None
    hooks.call("evr1_run_started", config=plain, folder=folder)
    started: list[Tracker] = []
    try:
        for tracker in trackers:
            tracker.start(plain, folder, steps)
            started.append(tracker)
        yield
    except BaseException as caught:
        error = caught
        raise
    finally:
        for tracker in started:
            tracker.close()
        engine.close()
        hooks.call("evr1_run_ended", error=error)


def _log(trackers: Sequence[Tracker], step: int, metrics: dict[str, float]) -> None:
    plain = session.as_plain(metrics)
    for tracker in trackers:
        tracker.log(step, plain)


def _tracker(name: str, options: Any) -> Tracker:
    tracker: Tracker = build_plugin("trackers", name, options, place="log.trackers")
    return tracker


def _need_trajectories(samples: Sequence[Sample], algorithm: Algorithm) -> None:
    """Raises DataError when stored trajectories are missing: any, where nothing is sampled; all, where groups hold one."""
    missing = [sample for sample in samples if sample.offline is None]
    if missing and not algorithm.rollouts:
        places = ", ".join(sample.origin or sample.uid for sample in missing[:5])
        raise DataError(
            [f"{len(missing)} training records have no stored trajectory, which this algorithm learns from: {places}, ..."]
        )
    if "offline" in algorithm.needs and len(missing) == len(samples):
        raise DataError(["data.train: no record has a stored trajectory, which this algorithm learns from"])


def _models(config: RunConfig, algorithm: Algorithm, policy: Policy, updates: int) -> Models:
    """Reference model and critic, where settings or algorithm ask for them. The tower of a reference model that is the policy's own
    start makes the features that the policy's does, as long as that is frozen."""
    models, family, processor, ranks = Models(), policy.family, policy.processor, policy.ranks
    store = None if config.kl.reference else policy.model.store
    if config.kl.place != "off":
        module = session.load_model(config, family, config.kl.reference)
        models.reference = Reference(module, family, processor, config, ranks, store)
    if "critic" in algorithm.needs:
        module = session.load_model(config, family, config.critic.path, dtype="float32")
        models.critic = Critic(module, family, processor, config, total_updates=updates, ranks=ranks)
    return models


def _updates_per_step(config: RunConfig) -> int:
    size = config.train.prompts_per_update or config.train.prompts_per_step
    return config.train.ppo_epochs * -(-config.train.prompts_per_step // size)


def _eos_ids(module: Any, processor: Any) -> tuple[int, ...]:
    named = module.generation_config.eos_token_id
    ids = named if named is not None else processor.tokenizer.eos_token_id
    return tuple(ids) if isinstance(ids, list | tuple) else (ids,)
