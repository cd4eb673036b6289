# SPDX-License-Identifier: Apache-2.0
"""Random texts of odd characters, and random regular expressions as Oniguruma reads them, for components_against_hf.py."""

ODD = [chr(p) for p in (
    0x0, 0x1, 0x9, 0xA, 0xB, 0xC, 0xD, 0x1C, 0x1F, 0x20, 0x7F, 0x80, 0x85, 0x8F, 0xA0, 0xAD, 0xB2, 0xBD, 0xC5, 0xDF,
    0xE9, 0x130, 0x131, 0x149, 0x17F, 0x1C4, 0x1C5, 0x2BC, 0x300, 0x301, 0x302, 0x307, 0x308, 0x30C, 0x315, 0x323,
    0x327, 0x328, 0x334, 0x338, 0x344, 0x345, 0x378, 0x37A, 0x37E, 0x390, 0x3A3, 0x3B1, 0x3C2, 0x3C3, 0x439, 0x483,
    0x5B0, 0x5D0, 0x600, 0x61D, 0x627, 0x644, 0x64B, 0x653, 0x661, 0x7FD, 0x897, 0x8E2, 0x903, 0x915, 0x93C, 0x94D,
    0x958, 0x9BE, 0x9C7, 0x9DC, 0xB3E, 0xB47, 0xB56, 0xDCF, 0xDD9, 0xE01, 0xE33, 0xF71, 0xF73, 0xF81, 0xFB2, 0x1025,
    0x102E, 0x1100, 0x1112, 0x1161, 0x1175, 0x11A7, 0x11A8, 0x11C2, 0x1680, 0x1734, 0x180E, 0x1AB0, 0x1ABF, 0x1B05,
    0x1B35, 0x1C89, 0x1D2C, 0x1DF6, 0x1E9E, 0x1EAD, 0x1F00, 0x1FB3, 0x1FEF, 0x2000, 0x200B, 0x200D, 0x2028, 0x2029,
    0x202F, 0x205F, 0x2060, 0x20DD, 0x2126, 0x212A, 0x212B, 0x2160, 0x2260, 0x2460, 0x24B6, 0x2581, 0x2ADC, 0x2E43,
    0x3000, 0x3002, 0x3042, 0x304B, 0x3099, 0x309A, 0x30AB, 0x30FC, 0x3131, 0x32FF, 0x3400, 0x4E00, 0x9FFF, 0xA66F,
    0xA69C, 0xA7CB, 0xA7F2, 0xA8C5, 0xA8E0, 0xAB5C, 0xAC00, 0xAC01, 0xD7A3, 0xD7B0, 0xE000, 0xF900, 0xFA0E, 0xFB1D,
    0xFB2C, 0xFB01, 0xFB06, 0xFDFA, 0xFE0F, 0xFE20, 0xFEFF, 0xFF10, 0xFF21, 0xFF76, 0xFF9E, 0xFFFD, 0x10140, 0x10400,
    0x105C9, 0x10A01, 0x10D4A, 0x10D50, 0x11099, 0x110BA, 0x11131, 0x111C9, 0x11347, 0x11357, 0x114B9, 0x114BA,
    0x11DE0, 0x16EA0, 0x16FF0, 0x1D15E, 0x1D165, 0x1D1BF, 0x1D400, 0x1D7D8, 0x1E000, 0x1E8D0, 0x1F130, 0x1F1E6,
    0x1F468, 0x1F3FD, 0x1F600, 0x20000, 0x2B820, 0x2CEA1, 0x2F800, 0x2FA1D, 0x323AF, 0xE0001, 0xE0100, 0x10FFFF)]
PLAIN = ["a", "A", "e", "Z", "s", "t", "f", "i", "0", "1", "42", " ", " ", " ", "  ", "\n", "\r\n", "\t", "!", "...",
         "-", "--", "_", "'", "'s", "'S", "'ll", "don't", "the", " the", ",", "(", "\u2581", "\u2581\u2581", "x_y", "ab"]

# Characters that end or continue a grapheme cluster, and bases that give clusters of less than six
# bytes.
CLUSTERS = ["a", "b", "E", "\u00e9", "\u0627", "\r", "\n", "\r\n", "\0", "\u00ad", "\u200b", "\u2028", "\U000e0001",
            "\u0300", "\u0301", "\u0327", "\u0483", "\u05b0", "\u064b", "\u07eb", "\u20dd", "\ufe0f", "\u0897", "\u1acf",
            "\U0001f3fd", "\U000e0100", "\u200c", "\u200d", "\u200d", "\u0903", "\u093e", "\u0e33", "\U0001d166",
            "\u0600", "\u06dd", "\u08e2", "\u0d4e", "\U000110bd", "\U0001f1e6", "\U0001f1fa", "\u00a9", "\u00ae",
            "\u263a", "\u2764", "\U0001f468", "\U0001f600", "\u0915", "\u0924", "\u0995", "\u0c95", "\u1000", "\ua984",
            "\u093c", "\u094d", "\u094d", "\u09cd", "\u0ccd", "\u1039", "\ua9c0", "\u1100", "\ua960", "\u1161",
            "\u1175", "\ud7b0", "\u11a8", "\ud7cb", "\uac00", "\uac01", "\U00016d63", "\u0378", " ", "\u3000"]


# All code points except those of empty planes.
POINTS = [*range(0xD800), *range(0xE000, 0x33500), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000)]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400), rng.randrange(0x10000),
                            rng.randrange(0x33000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:
            return chr(point)


def cluster_text_of(rng):
    few = rng.sample(CLUSTERS, rng.randrange(1, 9)) if rng.random() < 0.6 else CLUSTERS
    return "".join(rng.choice(few) if rng.random() < 0.95 else any_point(rng) for _ in range(rng.choice((2, 3, 5, 9, 25))))


def text_of(rng, near=()):
    """A random text, of few different characters or of many; `near` are some that it should have."""
    if not near and rng.random() < 0.3:
        return cluster_text_of(rng)
    length = rng.choice((0, 1, 2, 3, 4, 6, 10, 20, 40, 150))
    few = [rng.choice(ODD + PLAIN) for _ in range(rng.randrange(1, 6))] if rng.random() < 0.4 else None
    if near and rng.random() < 0.5:
        few = rng.choices(near, k=4) + [rng.choice(PLAIN), rng.choice(ODD)]
    return "".join(rng.choice(few) if few else any_point(rng) if (draw := rng.random()) < 0.2 else
                   rng.choice(ODD) if draw < 0.6 else rng.choice(PLAIN) for _ in range(length))


def flag(rng):
    return rng.random() < 0.5


def literal(rng):
    return "".join(rng.choice(PLAIN + ODD[:60]) for _ in range(rng.choice((1, 1, 1, 2))))


WS = r"\s+(?!\S)|\s+"
NLWS = r"\s*[\r\n]+|" + WS
CI = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
KNOWN = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|" + WS,
    CI + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    CI + "|" + PREFIX + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    CI + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + NLWS,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|" + WS,
    "|".join((PREFIX + UPPER + "*" + LOWER + "+" + CI + "?", PREFIX + UPPER + "+" + LOWER + "*" + CI + "?",
              r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", NLWS)),
    "|".join((PREFIX + UPPER + "*" + LOWER + "+", PREFIX + UPPER + "+" + LOWER + "*", r"\p{N}",
              r" ?[^\s\p{L}\p{N}]+[\r\n/]*", NLWS)),
    r"[\p{Han}]+|" + r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+" +
    CI + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" + NLWS,
    r"[\p{P}\$\+<=>\^~\|`]+", "[0-9][0-9][0-9]", r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    r"[\r\n]", r"\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba]+", r"\s?[!-/:-~\uff01-\uff0f]+", r"\s+$",
    r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}+", r"\d", r"\w+|[^\w\s]+", r" {2,}", r"[ \t]{1,3}", r"\n+", "\u2581+",
    r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )",
    r"[\p{P}!-/:-@\[-`{-~]", r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", r"(?<=\d),(?=\d{3}\b)", "``|''",
    PREFIX + r"((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|" + PREFIX + r"((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*|" + NLWS,
    PREFIX + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|" + WS,
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+",
    r"(?<=\s)\d|(?<!\w)a", r"\b", r"\B", r"^", r"$", r"(?:)", r"a*", r"\s*?", r"(?=\d{3})", r"\b\w", r"(?>\s+)a?", r"[^\n]*\n?",
]


CATEGORIES = ["L", "M", "N", "P", "S", "Z", "C", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc",
              "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cn", "Co", "Han",
              "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Hangul", "Hiragana", "Katakana", "Devanagari", "Thai"]
POSIX = ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "word"]


def known_set(rng, in_class):
    draw = rng.randrange(4 if in_class else 3)
    if draw == 0:
        return "\\" + rng.choice("sSdDwWhH")
    if draw < 3:
        return rng.choice(("\\p{", "\\P{", "\\p{^")) + rng.choice(CATEGORIES) + "}"
    return "[:" + rng.choice(("", "^")) + rng.choice(POSIX) + ":]"


def class_items(rng, depth):
    items = ""
    for _ in range(rng.randrange(1, 4)):
        draw = rng.random()
        if draw < 0.35:
            items += known_set(rng, True)
        elif draw < 0.55:
            first, last = sorted((any_point(rng), any_point(rng)) if draw < 0.45 else rng.choices("abcdkstz0189", k=2))
            items += in_class(first) + "-" + in_class(last)
        elif draw < 0.65 and depth < 2:
            items += a_class(rng, depth + 1)
        else:
            items += in_class(rng.choice(ODD + list("aAstK01 _-.,'!\n")))
    return items


def in_class(c):
    return f"\\x{{{ord(c):x}}}" if not c.isalnum() else c


def a_class(rng, depth=0):
    text = class_items(rng, depth)
    while rng.random() < 0.2:
        text += "&&" + class_items(rng, depth)
    return "[" + rng.choice(("", "", "^")) + text + "]"


def folded(rng):
    """Letters for which (?i) is supported: those of ASCII, except those that one character represents together."""
    word = "".join(rng.choice("abckKSxyz'1-") for _ in range(rng.randrange(1, 4)))
    return rng.choice(("(?i:%s)", "(?i:%s|[a-s]|[^k\\d])", "(?:(?i)%s|k)", "(?i:a(?-i:K)%s)")) % (
        "s" if "SS" in word.upper() else word)


def atom(rng):
    draw = rng.random()
    if draw < 0.25:
        return a_class(rng)
    if draw < 0.45:
        return known_set(rng, False)
    if draw < 0.52:
        return folded(rng)
    return rng.choice(["a", "b", "s", " ", "\\n", ".", "(?m:.)", "\\s", "\\S", "\\d", "\\w", "\\p{L}", "\\p{N}", "-", "!", "'", "\\h",
                       "[^a\\s]", "[\\p{L}\\p{M}]", "[^\\r\\n\\p{L}]", "[[:alpha:]_]", "[\\w&&[^\\d]]", "[!-/]", "\\x{301}",
                       "\\u3042", "[[:punct:]]", "[[:^space:]]", "[\u3040-\u30ff]", "\u00e9", "\u4e2d", "\U0001f600"])


def fixed(rng):
    """What always matches as many characters."""
    return "".join(atom_of_one(rng) + rng.choice(("", "", "{2}")) for _ in range(rng.randrange(1, 3)))


def atom_of_one(rng):
    return rng.choice((a_class(rng), known_set(rng, False), "a", " ", ".", "\u00e9", "(?:a|\\d)"))


def zero(rng, depth):
    draw = rng.random()
    if draw < 0.45:
        return rng.choice(["^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "(?!\\S)", "(?=\\p{L})", "(?<=a)", "(?<!\\s)", "(?<=ab|\\d)"])
    if draw < 0.7 and depth < 2:
        return rng.choice(("(?=", "(?!")) + regex(rng, depth + 1) + ")"
    return rng.choice(("(?<=", "(?<!")) + "|".join(fixed(rng) for _ in range(rng.randrange(1, 3))) + ")"


def regex(rng, depth=0):
    """A random supported pattern, with few nested repeats, because the reference may also take forever on these."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        draw = rng.random()
        if draw < 0.14:
            parts.append(zero(rng, depth))
            continue
        inner = draw < 0.32 and depth < 2
        quantifiers = ["", "", "?", "??", "{1,2}", "{2}", "{1,3}?", "?+", "++", "*", "+", "+?", "*?", "*+"] if inner else [
            "", "", "", "?", "*", "+", "*?", "+?", "??", "?+", "*+", "++", "{1,3}", "{2}", "{,2}", "{2,}", "{1,2}?", "{1,3}+"]
        quantifier = rng.choice(quantifiers)
        inside = regex(rng, depth + 1) if inner else ""
        if quantifier.startswith("{"):
            inside = not_empty(rng, inside)
        parts.append((rng.choice(("(?:", "(", "(?>")) + inside + ")" if inner else atom(rng)) + quantifier)
    text = "".join(parts)
    return text + "|" + regex(rng, depth + 1) if rng.random() < 0.35 and depth < 3 else text


def some_regex(rng):
    return rng.choice(KNOWN) if rng.random() < 0.4 else regex(rng)


def not_empty(rng, pattern):
    return "(?:" + pattern + ")" + atom(rng)
