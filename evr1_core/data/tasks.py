"""Problem types in one spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Other spellings of the types that the built-in rewards serve. Types are not merged: `counting` stays beside `numerical`, so that
# somebody's own reward can serve one of them.
SPELLINGS: Mapping[str, str] = {
    "multi choice": "multiple choice",
    "multiplechoice": "multiple choice",
    "mcq": "multiple choice",
    "spatio temporal grounding": "spatial temporal grounding",
    "spatiotemporal grounding": "spatial temporal grounding",
    "openended": "open ended",
    "freeform": "free form",
    "yes no": "yes/no",
    "code(python)": "code (python)",
    "svg": "svg code",
    "html": "html code",
}


def canonical(text: str) -> str:
    """A problem type in lower case, single blanks for ``_``, ``-`` and white space, in its usual spelling.

    ``Temporal_Grounding`` is ``temporal grounding``. A type that is not known passes through: the rewards say what they serve.
    """
    folded = re.sub(r"\s*/\s*", "/", re.sub(r"[\s_-]+", " ", text).strip().lower())
    return SPELLINGS.get(folded, folded)


TEMPLATES: Mapping[str, str] = {  # problem types that share the template of another
    "number": "numerical",
    "counting": "numerical",
    "regression": "numerical",
    "binary classification": "boolean",
    "yes/no": "boolean",
    "mathematics": "math",
    "code (python)": "code",
    "python": "code",
    "python code": "code",
    "svg code": "code",
    "html code": "code",
    "llava": "preference",
    "critic": "preference",
}


def template_name(task: str) -> str:
    """The name of a problem type as that of a file: ``spatial_temporal_grounding``, ``yes_no``, ``code_python``."""
    return re.sub(r"\W+", "_", task).strip("_")
