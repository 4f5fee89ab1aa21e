"""Plain text out of Markdown and LaTeX: what every reader of answers does first."""

from __future__ import annotations

import re
import unicodedata

_FENCE = re.compile(r"```[\w+-]*")
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])")
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|boxed|fbox|left|right)(?![A-Za-z])")
_DELIMITER = re.compile(r"\\[()\[\]]|[{}$*`]")
_BLANK = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_SENTENCES = {0xFDFA: "﷽", 0xFDFB: "﷽"}  # ligatures that NFKC spells out, in up to 18 letters
END_MARKS = " \n.。!！,，;；:：…"


def normalised(text: str) -> str:
    """``text`` in NFKC, which unifies full-width letters and digits and the like; at most about six times as long."""
    return unicodedata.normalize("NFKC", text.translate(_SENTENCES))


def plain(text: str) -> str:
    r"""``text`` in NFKC without emphasis, code fences, ``\text{}``, ``\boxed{}`` and dollar signs; runs of blanks become one."""
    text = _FENCE.sub(" ", normalised(text))
    text = _DELIMITER.sub("", _WRAPPER.sub("", _UNDERSCORE.sub("", text)))
    return _LINES.sub("\n", _BLANK.sub(" ", text)).strip()


def folded(text: str) -> str:
    """Plain text for comparing: case and white space folded, end punctuation removed."""
    return fold(plain(text))


def fold(text: str) -> str:
    """Text that is already plain, with case and white space folded and end punctuation removed."""
    return " ".join(text.casefold().split()).rstrip(END_MARKS)


def unfenced(text: str) -> str:
    """The content of a text that is one code fence; any other text as it is."""
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```") and len(stripped) >= 6):
        return text
    first, _, rest = stripped[3:-3].partition("\n")
    return rest if re.fullmatch(r"[\w+-]*\s*", first) and rest else stripped[3:-3]
