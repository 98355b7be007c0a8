"""Symbols and units that are read as words, and the marks a voice understands. Data only.

Each reading is (English, Mandarin). A unit is read only straight after a number; a symbol anywhere.
"""

from __future__ import annotations

PROMPT_TOKENS = (
    "[Stts]", "[Ptts]", "[spk_emb]", "[empty_spk]", "[Sbreak]", "[Pbreak]", "[Ebreak]",
    "[Sasr]", "[Easr]", "[Pasr]", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
)  # fmt: skip
"""Tokens that build a prompt or a batch; a user's text must not hold them."""

CONTROL_TOKEN = r"\[(?:uv_break|v_break|lbreak|llbreak|undefine|laugh|(?:break|oral|laugh|speed)_[0-9])\]"
"""Tokens a user may write, kept as they are (a regular expression without groups)."""

CURRENCIES = {
    "$": (("dollar", "dollars"), "美元"),
    "€": (("euro", "euros"), "欧元"),
    "£": (("pound", "pounds"), "英镑"),
    "¥": (("yuan", "yuan"), "元"),
    "₹": (("rupee", "rupees"), "卢比"),
    "₽": (("ruble", "rubles"), "卢布"),
    "₩": (("won", "won"), "韩元"),
}

UNITS = {
    "km/h": ("kilometers per hour", "公里每小时"),
    "m/s": ("meters per second", "米每秒"),
    "km": ("kilometers", "公里"),
    "cm": ("centimeters", "厘米"),
    "mm": ("millimeters", "毫米"),
    "m": ("meters", "米"),
    "kg": ("kilograms", "公斤"),
    "mg": ("milligrams", "毫克"),
    "g": ("grams", "克"),
    "ml": ("milliliters", "毫升"),
    "mL": ("milliliters", "毫升"),
    "L": ("liters", "升"),
    "ms": ("milliseconds", "毫秒"),
    "s": ("seconds", "秒"),
    "h": ("hours", "小时"),
    "Hz": ("hertz", "赫兹"),
    "kHz": ("kilohertz", "千赫兹"),
    "MHz": ("megahertz", "兆赫兹"),
    "GHz": ("gigahertz", "吉赫兹"),
    "KB": ("kilobytes", "千字节"),
    "MB": ("megabytes", "兆字节"),
    "GB": ("gigabytes", "吉字节"),
    "TB": ("terabytes", "太字节"),
    "°C": ("degrees Celsius", "摄氏度"),
    "°F": ("degrees Fahrenheit", "华氏度"),
    "°": ("degrees", "度"),
}

SYMBOLS = {
    "%": ("percent", "百分号"),
    "‰": ("per mille", "千分号"),
    "&": ("and", "和"),
    "+": ("plus", "加"),
    "=": ("equals", "等于"),
    "×": ("times", "乘以"),
    "÷": ("divided by", "除以"),
    "±": ("plus or minus", "正负"),
    "≈": ("about", "约等于"),
    "<": ("less than", "小于"),
    ">": ("greater than", "大于"),
    "@": ("at", "艾特"),
    "#": ("number", "井号"),
    "°": ("degrees", "度"),
    "$": ("dollars", "美元"),
    "€": ("euros", "欧元"),
    "£": ("pounds", "英镑"),
    "¥": ("yuan", "元"),
    "₹": ("rupees", "卢比"),
    "₽": ("rubles", "卢布"),
    "₩": ("won", "韩元"),
}

QUOTES = '"“”„‟«»‹›「」『』〝〞〟＂`´‘’‚‛＇'
BRACKETS = "()[]{}（）［］｛｝【】〔〕〖〗〈〉《》⟨⟩"
STOPS = ".。!！?？…｡‽"
PAUSES = ",，、;；:：—–―~～|・·"
