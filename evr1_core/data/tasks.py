"""Problem types in one spelling."""

from __future__ import annotations

import re


def canonical(text: str) -> str:
    """``text`` in lower case with single blanks for ``_``, ``-`` and white space: ``Temporal_Grounding`` is ``temporal grounding``."""
    return re.sub(r"[\s_-]+", " ", text).strip().lower()
