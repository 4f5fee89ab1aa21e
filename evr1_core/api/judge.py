"""Asks a language model behind an OpenAI-compatible endpoint to judge. A judge that fails gives an error, never a number."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import field, frozen, validators

from evr1_core.api.errors import ConfigError, NotJudgedError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
LONGEST_WAIT = 60.0  # seconds between two tries, whatever the server asks for
PASSING = (408, 409, 425, 429)  # these and everything from 500 on may pass; a wrong key or an unknown model stays
_JUDGEMENT = re.compile(r"\bjudge?ment\b[\s\"'*`_:=]{1,12}([01])(?![\d.,]*\d)", re.IGNORECASE)
_FIELD = re.compile(r"[\"']correct[\"']\s*:\s*[\"']?(true|false|1|0|yes|no)\b", re.IGNORECASE)
_WORD = re.compile(r"\b(?:(incorrect|not\s+correct|isn['’]t\s+correct)|correct)\b", re.IGNORECASE)


def _option(default: Any, help_text: str, check: Any = None) -> Any:
    return field(default=default, validator=check, metadata={"help": help_text})


@frozen(kw_only=True)
class JudgeClient:
    """One endpoint and how patiently it is asked. An attrs class: a reward or benchmark takes it as an option of that type.

    A request fails when it takes longer than ``timeout`` seconds in all, when the connection or the server fails, or when the reply
    cannot be read. Failures that may pass are tried again after ``backoff``, twice ``backoff``, ... seconds, or after what the
    server asks for. Needs the extra ``judge``: the package `openai`, imported at the first request.
    """

    base_url: str = _option("", "address of the endpoint, such as http://127.0.0.1:8000/v1")
    model: str = _option("", "name of the judging model, as the endpoint knows it")
    concurrency: int = _option(8, "requests at a time", validators.ge(1))
    retries: int = _option(3, "further tries after one that failed or gave no clear verdict", validators.ge(0))
    backoff: float = _option(1.0, "seconds before the first further try; doubled for each one after", validators.ge(0.0))
    timeout: float = _option(60.0, "seconds for one request in all", validators.gt(0.0))
    api_key_env: str = _option("", "name of the environment variable that holds the key; empty: the endpoint wants none")
    max_tokens: int = _option(1024, "limit of a reply, in tokens", validators.ge(1))

    def check(self, place: str = "judge") -> None:
        """Raises ConfigError, with ``place``, when nothing could be asked: no endpoint, no model, no key, no `openai` package."""
        problems = [f"{place}.{name}: a judge needs one" for name in ("base_url", "model") if not getattr(self, name).strip()]
        if self.api_key_env and not os.environ.get(self.api_key_env):
            problems.append(f"{place}.api_key_env: {self.api_key_env} is not in the environment; set it to the key of the endpoint")
        try:
            import openai  # noqa: F401
        except ImportError:
            problems.append(f"{place}: the package `openai` is not installed; pip install 'evr1[judge]'")
        if problems:
            raise ConfigError(problems)

    def ask(self, prompt: str, read: Callable[[str], T | None]) -> T:
        """What ``read`` makes of the reply to one prompt. Raises NotJudgedError when no try brought a verdict."""
        (verdict,) = self.ask_all([prompt], read)
        if isinstance(verdict, NotJudgedError):
            raise verdict
        return verdict

    def ask_all(self, prompts: Sequence[str], read: Callable[[str], T | None]) -> list[T | NotJudgedError]:
        """What ``read`` makes of the replies to ``prompts``, in order; in the place of one that failed, why.

        ``read`` gives None for a reply without a clear verdict, which is asked for again. The failure of one leaves the others
        alone. Raises ConfigError like :meth:`check`.
        """
        if not prompts:
            return []
        self.check()
        with ThreadPoolExecutor(max_workers=1) as pool:  # the caller may be inside an event loop of its own
            return pool.submit(asyncio.run, self._all(prompts, read)).result()

    async def _all(self, prompts: Sequence[str], read: Callable[[str], T | None]) -> list[T | NotJudgedError]:
        from openai import AsyncOpenAI

        key = os.environ.get(self.api_key_env) if self.api_key_env else ""
        places = asyncio.Semaphore(self.concurrency)
        async with AsyncOpenAI(
            base_url=self.base_url, api_key=key or "none", timeout=self.timeout, max_retries=0
        ) as client:  # which insists on a key
            return await asyncio.gather(*(self._patiently(client, places, prompt, read) for prompt in prompts))

    async def _patiently(
        self, client: AsyncOpenAI, places: asyncio.Semaphore, prompt: str, read: Callable[[str], T | None]
    ) -> T | NotJudgedError:
        reason, temperature, tries = "", 0.0, 0
        while tries <= self.retries:
            wait = self.backoff * 2.0**tries
            tries += 1
            try:
                async with places, asyncio.timeout(self.timeout):  # the client's own limit starts again with every byte
                    reply = await self._once(client, prompt, temperature)
                verdict = read(reply)
                if verdict is not None:
                    return verdict
                reason, temperature = f"no clear verdict in {_shown(reply)}", 0.7  # at 0 it would say the same again
            except TimeoutError:
                reason = f"no reply within {self.timeout:g} s"
            except _Failed as error:
                reason, wait = str(error), max(wait, error.wait)
                if not error.passing:
                    break
            if tries <= self.retries:
                await asyncio.sleep(min(wait, LONGEST_WAIT))
        times = f"{tries} {'try' if tries == 1 else 'tries'}"
        return NotJudgedError(f"judge {self.model} at {self.base_url}: {reason} ({times})")

    async def _once(self, client: AsyncOpenAI, prompt: str, temperature: float) -> str:
        import openai

        try:
            reply = await client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": prompt.encode("utf-8", "replace").decode("utf-8")}],
                temperature=temperature,
                max_tokens=self.max_tokens,
            )
        except openai.APIStatusError as error:
            passing = error.status_code in PASSING or error.status_code >= 500
            raise _Failed(f"status {error.status_code}", wait=_wait(error), passing=passing) from error
        except openai.APITimeoutError as error:
            raise TimeoutError from error
        except openai.APIConnectionError as error:
            raise _Failed(f"connection failed: {error.__cause__ or error}") from error
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # the body is no JSON, or nested without end
            raise _Failed(f"the reply cannot be read: {type(error).__name__}") from error
        return _content(reply)


class _Failed(Exception):
    """One request failed; ``wait``: seconds that the server asks for; ``passing``: it is worth another try."""

    def __init__(self, reason: str, *, wait: float = 0.0, passing: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.passing = wait, passing


def read_judgement(reply: str) -> bool | None:
    """Whether a judge's reply says that the answer is right; None when it does not say.

    The last ``Judgement: 1`` or ``0``; else a JSON field ``correct``; else the word incorrect, else correct.
    """
    if judged := _JUDGEMENT.findall(reply):
        return bool(judged[-1] == "1")
    if fields := _FIELD.findall(reply):
        return fields[-1].lower() in ("true", "1", "yes")
    words = list(_WORD.finditer(reply))
    return not any(word[1] for word in words) if words else None


def _wait(error: Any) -> float:
    """Seconds of a Retry-After header; 0 without one, or with a date."""
    value = error.response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) else 0.0


def _content(reply: Any) -> str:
    """The text of a completion; servers are not bound to send one, and the client library does not check."""
    choices = getattr(reply, "choices", None)
    content = getattr(getattr(choices[0], "message", None), "content", None) if isinstance(choices, list) and choices else None
    if not isinstance(content, str):
        raise _Failed("the reply holds no text")
    return content


def _shown(reply: str) -> str:
    return repr(reply if len(reply) <= 80 else f"{reply[:77]}...")
