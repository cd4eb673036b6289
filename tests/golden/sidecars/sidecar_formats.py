# SPDX-License-Identifier: Apache-2.0
"""Encodes the sidecars of a dataset in slow, simple code, as formats/spec/sum.md, mask.md, src.md, cuts.md,
digests.md, meta.md and rows.md specify them.

Only these pages were used to write this code, so that the project's own code can be compared with it.
"""
import hashlib
import struct

BLOCK = 1 << 20
GROUP = 64


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _crc_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # 0x1EDC6F41, bits reversed
    return byte


CRC_TABLE = [_crc_of_byte(byte) for byte in range(256)]
assert crc32c(b"123456789") == 0xE3069283


def encode_sum(bin_file, idx_file):
    """Returns the `.sum` for the bytes of a `.bin` and an `.idx`."""
    out = b"MILLSUM\0" + struct.pack("<IIQQ", 1, BLOCK, len(bin_file), len(idx_file))
    for data in (bin_file, idx_file):
        for start in range(0, len(data), BLOCK):
            out += struct.pack("<I", crc32c(data[start:start + BLOCK]))
    return out + hashlib.sha256(out).digest()


def encode_mask(trained):
    """Returns the `.mask` for a list with a true value for each token that is to be predicted."""
    bits = bytearray((len(trained) + 7) // 8)
    for token, is_trained in enumerate(trained):
        bits[token // 8] |= bool(is_trained) << token % 8
    header = b"MILLMSK\0" + struct.pack("<IIQQ", 1, BLOCK, len(trained), sum(map(bool, trained)))
    checksums = b"".join(struct.pack("<I", crc32c(bits[start:start + BLOCK])) for start in range(0, len(bits), BLOCK))
    return header + bytes(bits) + checksums + hashlib.sha256(header + checksums).digest()


def lengths_and_document_index(idx_file):
    """The two columns of an `.idx` that give the lengths of documents, as bytes and as numbers."""
    sequences, ends = struct.unpack_from("<QQ", idx_file, 18)
    lengths = idx_file[34:34 + 4 * sequences]
    index = idx_file[34 + 12 * sequences:34 + 12 * sequences + 8 * ends]
    return lengths, index, struct.unpack(f"<{sequences}i", lengths), struct.unpack(f"<{ends}q", index)


def rows_of_block(lengths, seq_len, multiple):
    """The number of rows into which best fit packs documents. Tries every row for each document."""
    full = sum(length // seq_len for length in lengths)
    shares = sorted((-(-(length % seq_len) // multiple) * multiple for length in lengths), reverse=True)
    rooms = []
    for share in filter(None, shares):
        fitting = [room for room in rooms if room >= share]
        if fitting:
            rooms.remove(min(fitting))
        rooms.append((min(fitting) if fitting else seq_len) - share)
    return full + len(rooms)


def encode_rows(bin_file, idx_file, seq_len, multiple, first, last, sum_file=None):
    """Returns the table of rows for the bytes of a dataset, and of its `.sum` if it has one."""
    length_bytes, index_bytes, lengths, index = lengths_and_document_index(idx_file)
    documents = [sum(lengths[a:b]) for a, b in zip(index, index[1:])][first:last]
    out = b"MILLROWS" + struct.pack("<II7qII", 1, 4096, seq_len, multiple, first, last,
                                    sum(documents), len(idx_file), len(bin_file),
                                    crc32c(index_bytes, crc32c(length_bytes)), sum_file is not None)
    out += sum_file[-32:] if sum_file is not None else bytes(32)
    rows = 0
    for start in range(0, len(documents), 4096):
        rows += rows_of_block(documents[start:start + 4096], seq_len, multiple)
        out += struct.pack("<q", rows)
    return out + struct.pack("<I", crc32c(out))


def varint(value):
    assert 0 <= value < 1 << 64
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(difference):
    """The zigzag code of a difference modulo 2^64."""
    difference %= 1 << 64
    if difference >= 1 << 63:
        difference -= 1 << 64
    return -2 * difference - 1 if difference < 0 else 2 * difference


def encode_src(places, names):
    """Returns the `.src` for (input, line, begin, end) of each document and the names (bytes). An
    input whose name ends in .parquet is counted in rows."""
    payload, directory = bytearray(), bytearray()
    for number, (source, line, begin, end) in enumerate(places):
        length = end - begin
        if number % GROUP == 0:
            directory += struct.pack("<IqQQ", source, line, begin, len(payload))
            payload += varint(2 * length)
            gap = 1
        else:
            last_source, last_line, last_begin, last_end = places[number - 1]
            if source == last_source:
                expected_line, expected_begin = last_line + 1, last_end + gap
            else:
                expected_line, expected_begin = last_line, last_begin
            differences = [(source - last_source) % (1 << 64), (line - expected_line) % (1 << 64),
                           (begin - expected_begin) % (1 << 64)]
            told = sum(bit for bit, more in zip((1, 2, 4), differences) if more)
            payload += varint(2 * length + (told != 0))
            if told:
                payload.append(told)
                for more in differences:
                    if more:
                        payload += varint(zigzag(more))
            if told == 4:
                gap = begin - last_end
    units = [name.endswith(b".parquet") for name in names]
    table = b"".join((bytes([unit]) if any(units) else b"") + struct.pack("<I", len(name)) + name
                     for name, unit in zip(names, units))
    header = b"MILLSRC\0" + struct.pack("<IIQQQQ", 1 + any(units), GROUP, len(places), len(payload), len(names),
                                        len(table))
    return header + bytes(payload) + bytes(directory) + table


def encode_cuts(points, keys, key):
    """Returns the `.cuts` of points. Each has 22 numbers, and then the tokens of each key."""
    out = b"MILLCUT\0" + struct.pack("<III", 1, keys, key)
    before = [0] * (22 + keys)
    for point in points:
        assert len(point) == len(before)
        changed = [i for i in range(22) if point[i] != before[i]]
        out += varint(sum(1 << i for i in changed))
        for i in changed + list(range(22, len(point))):
            out += varint(zigzag(point[i] - before[i]))
        before = point
    out += struct.pack("<Q", len(points))
    return out + struct.pack("<I", crc32c(out))


def encode_digests(documents):
    """Returns the `.digests` of documents, each a list of texts (bytes)."""
    out = b"MILLTXT\0" + struct.pack("<II", 1, 0)
    for texts in documents:
        out += hashlib.sha256(b"".join(text + struct.pack("<Q", len(text)) for text in texts)).digest()
    out += struct.pack("<Q", len(documents))
    return out + struct.pack("<I", crc32c(out))


def json_text(value):
    if isinstance(value, str):
        return '"' + "".join(json_character(c) for c in value) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(k)}: {json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(
        value, bool) else str(value)


def json_character(c):
    if c in '"\\':
        return "\\" + c
    if c == "\n":
        return "\\n"
    return f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c


def extent(path, text, begin, end, lines):
    """An input of a `.meta`. `text` is the whole text of the input."""
    entry = {"path": path}
    if begin:
        entry["begin"] = begin
    return entry | {"text_bytes": end - begin, "crc32c": f"{crc32c(text[begin:end]):08x}",
                    "lines": lines}


def encode_meta(meta):
    """Returns a `.meta` with the given entries, in the order of the specification."""
    assert list(meta) == ["level", "key", "path", "dtype", "append_eod", "on_bad_record", "options",
                          "tokenizer", "sum", "src", "tasks", "inputs", "counts", "bin_bytes",
                          "sum_root"]
    return (json_text({"millrace_meta": 1} | meta) + "\n").encode()
