"""From written text to the words that are compared: what a recognizer may write differently without being wrong.

It knows spelling only. Numbers are compared figure by figure, because a recognizer writes 42 for "forty two" and for
"four two". In the closed digit domain (every reference word is a digit) homophones are read as digits, too, because no
other word can have been meant. Mandarin is compared as it sounds, in pinyin,
because a recognizer that writes another character of the same sound has heard rightly.
"""

from __future__ import annotations

import re
import unicodedata

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
TENS = {"twenty": 2, "thirty": 3, "forty": 4, "fifty": 5, "sixty": 6, "seventy": 7, "eighty": 8, "ninety": 9}
HOMOPHONES = {
    "oh": "zero", "o": "zero", "nought": "zero", "won": "one", "to": "two", "too": "two", "for": "four",
    "fore": "four", "ate": "eight", "a": "eight", "sicks": "six",
}  # fmt: skip
# signs and units as a recognizer writes them for words
SIGNS = (
    (r"%", " percent "), (r"°", " degrees "), (r"\$\s*(\d+)", r"\1 dollars "), (r"(\d)\s*g\b", r"\1 grams "),
    (r"(\d)\s*m\b", r"\1 meters "), (r"(\d)\s*w\b", r"\1 watts "),
)  # fmt: skip
FIGURES = "零一二三四五六七八九"
# what the names of control tokens sound like when a voice reads them out ("[uv_break]", "[laugh_0]", "[speed_5]")
TAG_WORDS = ({"break", "breaks", "brake", "uvbreak"}, {"laugh", "laughs"}, {"oral"}, {"speed"}, {"stts"})
CONTROL = re.compile(r"\[[a-zA-Z]+(?:_[a-zA-Z0-9]+)*\]")


def plain_words(text: str) -> list[str]:
    """Lower-case words of English text: control tokens and punctuation gone, numerals spelled digit by digit.

    "[uv_break] Call 729!" -> call seven two nine. Apostrophes inside words stay.
    """
    text = unicodedata.normalize("NFKC", CONTROL.sub(" ", text)).lower().replace("’", "'")
    text = re.sub(r"[0-9]", lambda digit: f" {DIGITS[int(digit[0])]} ", text)
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text)


def comparable_words(text: str) -> list[str]:
    """`plain_words` with signs as words and numbers figure by figure: "twenty percent", "20 %" -> two zero percent."""
    for sign, spelling in SIGNS:
        text = re.sub(sign, spelling, text, flags=re.IGNORECASE)
    return as_figures(plain_words(text))


def is_digit_domain(words: list[str]) -> bool:
    """True when every word is a digit, so that the closed-domain reading applies."""
    return bool(words) and all(word in DIGITS for word in words)


def as_figures(words: list[str]) -> list[str]:
    """Number words to ninety-nine as their written figures: forty two -> four two, twenty -> two zero. Others stay."""
    figures: list[str] = []
    for index, word in enumerate(words):
        if word in TEENS:
            figures += ["one", DIGITS[TEENS.index(word)]]
        elif word in TENS:
            following = words[index + 1] if index + 1 < len(words) else ""
            figures += [DIGITS[TENS[word]]] if following in DIGITS[1:] else [DIGITS[TENS[word]], "zero"]
        else:
            figures.append(word)
    return figures


def heard_digits(words: list[str]) -> list[str]:
    """What a recognizer wrote, read in the digit domain: figures, and homophones as digits. Other words stay, and count
    as errors.
    """
    return as_figures([HOMOPHONES.get(word, word) for word in words])


def mandarin_syllables(text: str) -> list[str]:
    """Pinyin syllables with tone numbers (5 is the neutral tone) of Mandarin text; Latin words stay, in lower case.

    "[uv_break] 你好, 2!" -> ni3 hao3 er4. Control tokens and punctuation go; figures are read one by one.
    """
    from pypinyin import Style, lazy_pinyin

    text = unicodedata.normalize("NFKC", CONTROL.sub(" ", text)).lower()
    text = re.sub(r"[0-9]", lambda digit: FIGURES[int(digit[0])], text)
    syllables: list[str] = []
    for run in re.findall(r"[a-z]+(?:'[a-z]+)*|[\u3400-\u9fff]+", text):
        is_latin = run[0] < "\u3400"
        syllables += [run] if is_latin else lazy_pinyin(run, style=Style.TONE3, neutral_tone_with_five=True)
    return syllables


def as_written(text: str, language: str) -> str:
    """A text as Whisper writes it: no control tokens, a capital first, a full stop last, a space before English."""
    plain = " ".join(unicodedata.normalize("NFKC", CONTROL.sub(" ", text)).split())
    stop = "" if plain.endswith((".", "!", "?", "。")) else "。" if language == "zh" else "."
    return f"{'' if language == 'zh' else ' '}{plain[:1].upper()}{plain[1:]}{stop}"


def spoken_tags(said: list[str], heard: list[str]) -> int:
    """How often a control token's name was heard where the text has no such word: read out instead of obeyed."""
    return sum(
        max(0, sum(word in names for word in heard) - sum(word in names for word in said))
        for names in TAG_WORDS
    )
