# SPDX-License-Identifier: Apache-2.0
"""Strings that byte-level BPE tokenizers have encoded wrongly; generate.py imports this module."""

# All code points with the property White_Space. Then similar code points without it.
SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
NO_SPACES = "\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff"

SUFFIXES = ["s", "t", "re", "ve", "m", "ll", "d"]

END = "<|endoftext|>"

END_OF_TEXT = [
    END, END * 2, END * 3, f" {END}", f"{END} ", f" {END} ", f"a{END}b", f"a {END} b",
    f"a  {END}  b", f"{END}\n", f"\n{END}\n", f"\n\n{END}", f"'{END}s", f"don{END}'t", f"é{END}é",
    f"9{END}9", f"{END}'s", "<|endoftext|", "<|endoftext", "<|endoftext| >", "< |endoftext|>",
    "<|ENDOFTEXT|>", "<|EndOfText|>", "|endoftext|>", "endoftext", "<<|endoftext|>>",
    "<|<|endoftext|>|>", "<|endo<|endoftext|>ftext|>", "<|endoftext|><|endoftext|",
    "<|endof\u200btext|>", "<|endoftext\u0301|>", "<|endoftext|>\u0301", "<|im_start|>",
    "<|endofprompt|>", "<|", "|>", f"x{END}" * 20,
]

CONTRACTIONS = [
    "I'm, you're, he's, we've, they'll, she'd, can't",
    "I'M, YOU'RE, HE'S, WE'VE, THEY'LL, SHE'D, CAN'T", "'s't're've'm'll'd", "'S'T'RE'VE'M'LL'D",
    "'Re'rE'Ve'vE'Ll'lL", "'sample 'tame 'more 'dog 'llama", "''s", "'''", "' s", "'\u017f",
    "\u2019s and \u2019t", "rock'n'roll", "y'all'd've", "'", "a'", "'a", "1's", "é's", " 's",
    "  's", "\n's", "\u00a0's", "'s's", "'l", "'r", "'v", "'lll", "o'clock", "$'s", "it''s",
]

NUMBERS = [
    "0", "12", "123", "1234", "12345678901234567890", "3.14", "1,000,000", "1e-9", "0x1F", " 42",
    "  42", "a1b2c3", "1a", "a1", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳", "०१२३४५", "๐๑๒๓", "０１２３", "𝟎𝟏𝟐𝟛𝟜", "𞥐𞥑",
    "²³¹", "½¼¾", "①②③", "ⅠⅡⅢⅳ", "㊀㊁", "〡〢〣", "一二三", "𐄇𐄈", "1²", "a²", "x₂", "12½", "Ⅷth", "5⃣",
    "1st 2nd 3rd", "٣٫١٤", "\u0be6\u0be7\u0bf0", "\u1369\u1372", "\u2469\u24ea", "\U00010107x",
]

MARKS = [
    "e\u0301", "\u0301", " \u0301", "\u0301e", "a\u0300\u0301\u0302", "1\u0301", "!\u0301",
    "\n\u0301", "Z\u0351\u036b\u0343a\u0363\u0368l\u034ag\u0313o\u0351", "क्षत्रिय", "नि", "ನಿ",
    "ที่นี่", "שָׁלוֹם", "مَطْحَنَة", "\u1112\u1161\u11ab", "한", "e\u0301 \u00e9 E\u0301 \u00c9",
    "\u0345", "\u20dd", "a\u20dd", "\ua67c\u0488x",
]

EMOJI = [
    "😀", "😀😀😀", " 😀", "a😀b", "👍🏽", "👨\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪", "🇩🇪🇫🇷🇪🇸",
    "1\ufe0f\u20e3", "☺\ufe0e☺\ufe0f", "❤\ufe0f\u200d🔥",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\u200d", "\ufe0f",
    "🧑🏿\u200d🤝\u200d🧑🏻",
]

CASES = [
    "\u0130", "i\u0307 I \u0131 \u0130", "İstanbul'da", "ß ẞ ſ ﬁ ﬀ", "ǅ ǆ Ǆ", "Σςσ",
    "K Å Ω (\u212a \u212b \u2126)", "ʰʱ", "ªº", "Ꭰꭰ", "Ა ა", "\u1e9e's", "Ⓐⓐ", "\u0149", "ŉ'S",
]

# Unassigned code points, private-use code points, non-characters, format characters, and letters
# and symbols outside the first plane.
RARE = [
    "\u0378", "a\u0378b", " \u0378", "\u0379\u0379", "\U000e0fff", "\uffff", "\ufffe", "\ufdd0",
    "\U0010ffff", "\ue000", "\uf8ff x", "\U000f0000", "\U0010fffd\U0010fffd", "\u00ad",
    "co\u00adop", "\u200e\u200f\u202a", "\u2066a\u2069", "\ufffd", "\ufffd\ufffd ", "𐍈", "𝒳𝓎",
    " 𠮷野家", "𐐀𐐨", "𒀀𒀁", "𓀀", "𞤀𞤢", "\U0001f1e6", "\U0001d165", "\U0001d7ff", "\U000323af",
    "\ud7ff\ue000", "ꙮ", "﷽", "ﷺ", "〱〲", "゛", "ー", "々", "〆", "ｱﾞ", "\u3164", "\u115f", "\u2800",
    "\u034f",
]

CONTROLS = [
    "\0", "\0\0", "a\0b", " \0", "\0 ", "\x01\x02\x03", "\x07bell", "\x1b[31m", "\x7f", "\x80\x81",
    "\x9f", "\r", "\r\n", "\r\n\r\n", "a\r\nb", "a\rb", "\n\r", "\t\t\tx", " \tx", "\t x",
    "\x0b\x0c", "\x1fx", " \x1fx", "".join(map(chr, range(32))),
]

WHITESPACE = [
    "", " ", "  ", "   ", " a", "  a", "   a", "a ", "a  ", "a   ", " a ", "  a  ", "a b", "a  b",
    "a   b", "\n", "\n\n", "\n\n\n", "a\n", "a\n\n", "\na", "\n\na", "a\nb", "a\n\nb", "a \nb",
    "a\n b", "a \n b", "a  \n\n  b", " \n", "\n ", " \n ", "\n \n", "\t", "a\tb", "a\t\tb", "\ta",
    "a \t b", "a\u00a0b", "a\u00a0 b", "a \u00a0b", " \u00a0", "\u00a0 ", "\u3000a",
    "a\u3000\u3000b", "a\x85b", "a\x85\x85b", " \x85", "\x85 x", "a\u2028b", "a \u2028 b",
    "\u2029\u2029", "  !", "! !", "!  !", "   1", "1   ", "    if x:\n        return  y\n\n\n",
    "a \n \n \n b   \t\t  c", "trailing \t\n", "a\u200b b", " \u200b", "\u180e", " \u180e a",
]

RUNS = [
    "a" * 300, "ab" * 150, " " * 300, " " * 300 + "x", "x" + " " * 300, "\n" * 300, "\t" * 300,
    "1" * 300, "!" * 300, "=" * 300, "'" * 300, "'s" * 150, "é" * 300, "字" * 300, "😀" * 300,
    "\u0301" * 300, "\u00a0" * 300, "\0" * 300, " a" * 150, "  a" * 100, "a \n" * 100, "th" * 150,
    "the" * 100, " the" * 100, "e" * 299, "e" * 301, "-" * 72 + "\n" + "-" * 72,
]

MIXED = [
    "Hello, world!", "hello world  foo   bar", "C++20 & C#, F#!", "x=1;y=2", "foo_bar-baz.qux",
    "a.b,c;d:e", "https://example.org/a?b=c#d", "user@example.org", "([{<>}])", "...", "…",
    "--- a/b", "#!/bin/sh", "$5.00", "100%", "\\n is not \n", '{"a": [1, 2.5, null]}', "«Où ?»",
    "日本語とEnglishと数字123", "русский English 中文", "العربية123English", "한국어 텍스트", "naïve café",
    "Ünïcödé", "a\u0301b c\u0327d", "ẅ ẍ", "x" + "\u0301" + " y", "!?!?!", "a!b?c", "\"quoted\"",
    "“curly” ‘quotes’", "— – -", "✓✗★", "→←", "€£¥₺", "C'est l'été",
]


def strings():
    """All strings, in a fixed order, without duplicates."""
    spaced = [f"a{c}b" for c in SPACES + NO_SPACES] + [f"a{c}{c} b{c}" for c in SPACES + NO_SPACES]
    spaced += [SPACES, NO_SPACES, " " + NO_SPACES + "x"]
    suffixed = [f"x'{form}y" for s in SUFFIXES for form in (s, s.upper(), s.title())]
    groups = [WHITESPACE, spaced, CONTRACTIONS, suffixed, NUMBERS, MARKS, EMOJI, CASES, RARE]
    groups += [CONTROLS, END_OF_TEXT, RUNS, MIXED]
    return list(dict.fromkeys(text for group in groups for text in group))
