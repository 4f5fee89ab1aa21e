"""Prompts from templates: one for each problem type, replaceable by a file, in a sandbox."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evr1_core.api.answers import split_options
from evr1_core.api.errors import ConfigError
from evr1_core.api.samples import Media, Prompt, Sample
from evr1_core.data.records import PLACEHOLDER

BUILT_IN = Path(__file__).parent / "templates"
MARK = "\x00"  # stands in for a placeholder while the template runs: text that options bring in cannot be taken for one
_MARKED = re.compile(f"{MARK}(?:image|video){MARK}")


class PromptTemplates:
    """Renders samples. ``TASK.jinja`` (blanks as ``_``) serves a problem type, ``default.jinja`` the others.

    ``folder`` may hold files of the same names that replace the built-in ones. A template gets ``problem``, ``options`` (with their
    labels), ``task``, ``style`` and ``extra``. Raises ConfigError, naming the file, for one that cannot be used.
    """

    def __init__(self, folder: str, style: str) -> None:
        loaders = [FileSystemLoader(folder)] if folder else []
        self._environment = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([*loaders, FileSystemLoader(BUILT_IN)]),
            undefined=StrictUndefined,
            autoescape=False,  # noqa: S701 - prompts are no HTML
            trim_blocks=True,
        )
        self._known = {Path(name).stem for name in self._environment.list_templates(extensions=["jinja"])}
        self._style = style

    def prompt(self, sample: Sample) -> Prompt:
        """The prompt of a sample, its media where the placeholders of the problem stand."""
        name = sample.task.replace(" ", "_")
        name = name if name in self._known and not name.startswith("_") else "default"
        problem = PLACEHOLDER.sub(lambda found: f"{MARK}{found[1]}{MARK}", sample.problem.replace(MARK, ""))
        labels, texts = split_options(sample.options)
        options = [f"{label}. {option}".replace(MARK, "") for label, option in zip(labels, texts, strict=True)]
        try:
            text = self._environment.get_template(f"{name}.jinja").render(
                problem=problem, options=options, task=sample.task, style=self._style, extra=sample.extra
            )
        except TemplateError as error:
            line = f":{error.lineno}" if getattr(error, "lineno", None) else ""
            raise ConfigError([f"data.templates: {name}.jinja{line}: {error} (record {sample.uid!r})"]) from error
        return Prompt(parts=_parts(text.strip(), sample, name))


def _parts(text: str, sample: Sample, name: str) -> tuple[str | Media, ...]:
    pieces = _MARKED.split(text)
    if len(pieces) - 1 != len(sample.media):
        raise ConfigError(
            [f"data.templates: {name}.jinja shows {len(pieces) - 1} of the {len(sample.media)} media of record {sample.uid!r}"]
        )
    parts: list[str | Media] = []
    for piece, media in zip(pieces, (*sample.media, None), strict=True):
        parts += [piece] if piece else []
        parts += [media] if media else []
    return tuple(parts)
