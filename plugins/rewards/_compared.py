"""What a worker process is asked: two programs in, one number out."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from evr1_plugins.rewards import _html, _python, _svg

LANGUAGES = ("svg", "html", "python")
_READERS: dict[str, tuple[Any, ModuleType]] = {
    "svg": (_svg.drawing, _svg),
    "html": (_html.page, _html),
    "python": (_python.rules, _python),
}


def compare(language: str, guess: str, gold: str) -> dict[str, Any]:
    """``{"similarity": ...}`` in [0, 1], or ``{"unread": "gold"}`` or ``{"unread": "answer"}``."""
    reader, module = _READERS[language]
    if (right := reader(gold)) is None:
        return {"unread": "gold"}
    if (left := reader(guess)) is None:
        return {"unread": "answer"}
    return {"similarity": min(1.0, max(0.0, float(module.similarity(left, right))))}
