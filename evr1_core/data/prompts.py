"""Prompts from templates: one for each problem type, replaceable by a file, in a sandbox."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evr1_core.api.answers import split_options
from evr1_core.api.errors import ConfigError
from evr1_core.api.samples import Media, Prompt, Sample
from evr1_core.data.media import PLACEHOLDER
from evr1_core.data.tasks import TEMPLATES, canonical, template_name

BUILT_IN = Path(__file__).parent / "templates"
# What a template's own expressions can raise on some record; anything else is a defect of ours.
_FAILURES = (TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class PromptTemplates:
    """Renders samples. ``TYPE.jinja`` (``_`` for blanks and signs) serves a problem type, ``default.jinja`` those without one.

    ``folder`` may hold files of the same names that replace the built-in ones, or are for types of one's own. A template gets
    ``problem``, ``options`` (with their labels), ``task``, ``style`` (``think`` or ``direct``) and ``extra`` (the other keys of the
    record). Raises ConfigError, naming the file, for a template that cannot be used.
    """

    def __init__(self, folder: str, style: str) -> None:
        loaders = [FileSystemLoader(folder)] if folder else []
        self._folder, self._style = folder, style
        self._environment = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([*loaders, FileSystemLoader(BUILT_IN)]),
            undefined=StrictUndefined,
            autoescape=False,  # prompts are no HTML
            trim_blocks=True,
        )
        if folder:
            _check_names(Path(folder))
        self._templates = self._compiled()
        self._mark = f"\x00{secrets.token_hex(8)}:"  # stands before a medium's number; no record can hold it

    def prompt(self, sample: Sample) -> Prompt:
        """The prompt of a sample, its media where the placeholders of the problem stand."""
        template = self._template(sample.task)
        try:
            text = template.render(
                problem=self._marked(sample.problem),
                options=labelled(sample.options),
                task=sample.task,
                style=self._style,
                extra=sample.extra,
            )
        except _FAILURES as error:
            raise ConfigError([f"{_place(template, error)}: {error} (record {sample.uid!r})"]) from error
        if not text.strip():
            raise ConfigError([f"{_place(template)}: renders nothing for record {sample.uid!r}"])
        return Prompt(parts=self._parts(text.strip(), sample, template))

    def _template(self, task: str) -> Template:
        names = (template_name(task), template_name(TEMPLATES.get(task, "")), "default")
        return next(self._templates[name] for name in names if name in self._templates)

    def _compiled(self) -> dict[str, Template]:
        """All templates: one that does not parse is an error whether or not a record needs it."""
        problems, found = [], {}
        for name in self._environment.list_templates(extensions=["jinja"]):
            try:
                template = self._environment.get_template(name)
            except (TemplateError, UnicodeDecodeError) as error:
                line = f":{error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
                problems.append(f"{Path(self._folder) / name}{line}: {error}")
            else:
                if not name.startswith("_"):
                    found[name.removesuffix(".jinja")] = template
        if problems:
            raise ConfigError(problems)
        return found

    def _marked(self, problem: str) -> str:
        """The problem with a mark for each placeholder, which a placeholder that options bring in is not."""
        pieces = PLACEHOLDER.split(problem)[::2]
        return pieces[0] + "".join(f"{self._mark}{number}\x00{piece}" for number, piece in enumerate(pieces[1:]))

    def _parts(self, text: str, sample: Sample, template: Template) -> tuple[str | Media, ...]:
        pieces = re.split(rf"{self._mark}(\d+)\x00", text)
        order = [int(number) for number in pieces[1::2]]
        if sorted(order) != list(range(len(sample.media))):
            count = len(sample.media)
            raise ConfigError(
                [f"{_place(template)}: must show the {count} media of record {sample.uid!r} once each; shows {len(order)}"]
            )
        parts: list[str | Media] = [pieces[0]]
        for number, piece in zip(order, pieces[2::2], strict=True):
            parts += [sample.media[number], piece]
        return tuple(part for part in parts if part)


def labelled(options: Sequence[str]) -> list[str]:
    """Options with labels: their own, as they are written, or ``A.``, ``B.``, ..."""
    labels, texts = split_options(options)
    return [
        option.strip() if text != option.strip() else f"{label}. {text}"
        for option, label, text in zip(options, labels, texts, strict=True)
    ]


def _check_names(folder: Path) -> None:
    """Raises ConfigError for a folder that is none, or a file that no problem type would ever use."""
    if not folder.is_dir():
        raise ConfigError([f"data.templates: there is no folder {folder}"])
    problems = []
    for path in sorted(folder.glob("*.jinja")):
        wanted = template_name(canonical(path.stem))
        if not path.name.startswith("_") and path.stem != wanted:
            problems.append(f"{path}: no problem type uses this name; {wanted}.jinja would serve `{canonical(path.stem)}`")
    if problems:
        raise ConfigError(problems)


def _place(template: Template, error: BaseException | None = None) -> str:
    """File, and the line of the template that an exception came from."""
    line, trace = None, error.__traceback__ if error else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == template.filename:
            line = trace.tb_lineno  # Jinja2 rewrites tracebacks to the lines of templates
        trace = trace.tb_next
    return f"{template.filename}:{line}" if line else str(template.filename)
