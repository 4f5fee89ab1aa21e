"""A greedy pass of a checkpoint over the validation records of a configuration, without training."""

from __future__ import annotations

from evr1_core.api import ConfigError
from evr1_core.config.schema import RunConfig
from evr1_core.registry.hooks import load_hooks
from evr1_core.train import session
from evr1_core.train.validate import Validation, val_sampling, validate


def evaluate(config: RunConfig) -> Validation:
    """Accuracies of ``model.path`` on ``data.val``, with the frames, templates and rewards of the settings."""
    records = session.read_records(config, load_hooks(config.plugins.strict))
    if not records.val:
        raise ConfigError(["data.val: no sample to evaluate on"])
    family = session.find_family(config)
    processor = session.load_processor(config.model.path)
    scorer = session.build_scorer(config, family.opens_thinking(processor))
    scorer.check_tasks(records.val)
    clips = session.build_cache(config, family)
    records, _, _ = session.leave_out_bad_media(records, clips, config.data)
    encoder = session.build_encoder(config, family, processor, clips)
    records, _, _ = session.leave_out_long_prompts(records, encoder, config.rollout)
    engine = session.build_engine(config)
    session.set_threads(config)
    try:
        engine.run(engine.engine.start(config.model.path, family, processor, session.load_model(config, family)))
        result: Validation = engine.run(validate(engine.engine, encoder, scorer, records.val, val_sampling(config)))
    finally:
        engine.close()
    return result
