"""The prompt strings that ChatTTS's GPT was trained with.

Source: the upstream package's text decoration (chattts 0.2.5): the style prompt stands before the text, and the
strings that mark prompt and speaker are removed from user text first.
"""

from __future__ import annotations

import re

DEFAULT_STYLE = "[speed_5]"

_MARKERS = ("[Stts]", "[spk_emb]", "[empty_spk]")
_STYLE = re.compile(r"(?:\[(?:speed|oral|laugh|break)_[0-9]\])*")


def code_prompt(text: str, *, speaker: bool, style: str = DEFAULT_STYLE, sample_text: str = "") -> str:
    """The prompt whose continuation is audio codes; `sample_text` is what a voice sample says."""
    for marker in _MARKERS:
        text = text.replace(marker, "")
    who = "[spk_emb]" if speaker else "[empty_spk]"
    return f"[Stts]{who}{sample_text}{style}{text.strip()}[Ptts]"


def refine_prompt(text: str, style: str = "") -> str:
    """The prompt whose continuation is the same text with pauses, laughs and fillers, ended by `[Ebreak]`."""
    return f"[Sbreak]{text}[Pbreak]{style}"


def is_style(style: str) -> bool:
    """Whether `style` is made of style tokens only, e.g. `[speed_5][oral_2]`; the empty string is."""
    return _STYLE.fullmatch(style) is not None
