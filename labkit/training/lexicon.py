"""The words of the nano voice's whole domain: numbers to ninety-nine and command-like words, by group.

Chosen to be told apart by ear: no rhyming pairs of one group, and where an everyday word had a double in the list
another was taken (stay, not wait, beside eight; backward, not back, beside black; no white beside right). "two" and
"to" are the one pair that sounds alike. Knows no grammar and no speech.
"""

from __future__ import annotations

from labkit.training.corpus import DIGITS

TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

GROUPS: dict[str, tuple[str, ...]] = {
    "digit": DIGITS,
    "teen": TEENS,
    "tens": TENS,
    "answer": ("yes", "no", "okay", "please", "sorry", "thanks"),
    "steer": ("turn", "go", "move"),
    "access": ("open", "close", "lock"),
    "control": ("start", "stop", "check", "repeat", "cancel"),
    "adjust": ("set", "increase", "reduce"),
    "media": ("play", "pause"),
    "contact": ("call", "send", "show"),
    "stay": ("stay",),
    "side": ("left", "right"),
    "direction": ("up", "down", "forward", "backward"),
    "compass": ("north", "south", "east", "west"),
    "colour": ("red", "green", "blue", "yellow", "black", "orange", "purple", "silver"),
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "moment": ("now", "today", "tomorrow"),
    "daytime": ("morning", "evening"),
    "duration": ("seconds", "minutes", "hours"),
    "distance": ("meters", "steps"),
    "measure": ("percent", "degrees", "watts"),
    "goods": ("grams", "dollars"),
    "device": ("light", "heater", "fan", "radio", "camera", "robot", "engine", "printer"),
    "entry": ("door", "window", "curtain"),
    "clock": ("timer", "alarm"),
    "level": ("volume", "speed", "power"),
    "sound": ("music", "message"),
    "room": ("kitchen", "bedroom", "office", "garage"),
    "state": ("on", "off"),
    "manner": ("slowly", "quickly", "again"),
    "glue": ("the", "to", "and", "at", "in"),
}  # fmt: skip
RESPELLED = {"close": "cloze", "increase": "in crease"}
"""How words are written for espeak-ng, which reads them as the adjective and the noun otherwise."""
NUMBERS = (*DIGITS, *TEENS, *TENS)
COMMANDS = tuple(
    word for group, words in GROUPS.items() for word in words if group not in ("digit", "teen", "tens")
)
LEXICON = (*NUMBERS, *COMMANDS)


def number_words(number: int) -> tuple[str, ...]:
    """0 .. 99 as it is spoken: 42 -> ("forty", "two"). ValueError beyond."""
    if not 0 <= number <= 99:
        raise ValueError(f"number_words: {number} is not in 0 .. 99, the numbers of the domain")
    if number < 20:
        return ((*DIGITS, *TEENS)[number],)
    tens, ones = divmod(number, 10)
    return (TENS[tens - 2], DIGITS[ones]) if ones else (TENS[tens - 2],)
