# SPDX-License-Identifier: Apache-2.0
"""The instant order, written only from the text of formats/spec/instant_order.md.

Slow and simple on purpose. It shares no code with the C++ that is compared with it.
"""

import math
from fractions import Fraction

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
TAGS = {"windows": b"windows", "bins": b"bins", "documents": b"document"}


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def absorb(hashed, number):
    return mix(((hashed ^ number) + GOLDEN) & MASK)


def draw(hashed, i):
    return mix((hashed + (i + 1) * GOLDEN) & MASK)


def name_hash(name):
    hashed = 0xCBF29CE484222325
    for byte in name.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & MASK
    return hashed


def epoch_hash(what, seed, name, epoch):
    hashed = mix(int.from_bytes(TAGS[what], "little"))
    for number in (seed, name_hash(name), epoch):
        hashed = absorb(hashed, number)
    return hashed


def network(hashed, bits, x):
    """Returns the result of one pass through the network, which permutes the numbers of `bits` bits."""
    low_bits = (bits + 1) // 2
    high_bits = bits - low_bits
    high, low = divmod(x, 1 << low_bits)
    for i in range(6):
        half, width = (low, high_bits) if i % 2 == 0 else (high, low_bits)
        y = ((half ^ draw(hashed, i)) * 0xBF58476D1CE4E5B9) & MASK
        f = (((y ^ (y >> 32)) * 0x94D049BB133111EB) & MASK) >> (64 - width)
        if i % 2 == 0:
            high ^= f
        else:
            low ^= f
    return (high << low_bits) + low


def permute(hashed, n, x):
    bits = 8
    while 1 << bits < n:
        bits += 1
    while True:
        x = network(hashed, bits, x)
        if x < n:
            return x


def offset(hashed, epoch, tokens, seq_len):
    limit = (tokens - 1) % seq_len + 1
    return 0 if epoch == 0 else draw(hashed, 6) * limit >> 64


def window(seed, name, tokens, seq_len, k):
    """Returns (epoch, window, first token) of sample k of a source."""
    per_epoch = (tokens - 1) // seq_len
    epoch, i = divmod(k, per_epoch)
    hashed = epoch_hash("windows", seed, name, epoch)
    w = permute(hashed, per_epoch, i)
    return epoch, w, offset(hashed, epoch, tokens, seq_len) + w * seq_len


def counts_of(weights):
    """Returns the number of slots of each source, and log2 of the period."""
    if len(weights) == 1:
        return [1], 0
    total = 0.0
    for weight in weights:
        total += weight
    for bits in range(16, 23):
        quotas = [Fraction(weight / total) * 2**bits for weight in weights]
        counts = [math.floor(quota) for quota in quotas]
        by_rest = sorted(range(len(weights)), key=lambda i: (counts[i] - quotas[i], i))
        for i in by_rest[: 2**bits - sum(counts)]:
            counts[i] += 1
        if min(counts) >= 32:
            break
    return counts, bits


def slots_of(weights, length):
    """Returns the source of each of the first `length` positions, but at most one period of them."""
    counts, bits = counts_of(weights)
    n = len(counts)
    if n == 1:
        return [0] * length
    period = 1 << bits
    delta = Fraction(1, 2 * n - 2)
    had = [0] * n
    order = []
    for t in range(1, min(length, period) + 1):
        best = None
        for i in range(n):
            share = Fraction(counts[i], period)
            if share * t - had[i] >= delta:
                deadline = (had[i] + 1 - delta) / share
                if best is None or deadline < best[0]:
                    best = (deadline, i)
        order.append(best[1])
        had[best[1]] += 1
    return order
