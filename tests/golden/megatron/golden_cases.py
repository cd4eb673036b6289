# SPDX-License-Identifier: Apache-2.0
"""The contents of the files in this folder, which generate.py writes."""

THREE = [[[1, 2, 3]], [], [[4, 5], [6, 7, 999]]]

# name: (dtype, multimodal, documents). A document is a list of sequences; in a multimodal dataset,
# each is a pair (tokens, mode).
CASES = {
    "idx_uint16_3docs": ("uint16", False, THREE),
    "idx_int32": ("int32", False, [[[1, 2, 70000]]]),
    "idx_mm": ("int32", True, [[([1, 2], 0), ([3], 1)], [([9], 1)]]),
    "idx_empty": ("uint16", False, []),
}

# The dtypes and the ends of their ranges. For floats: the largest range of exact whole numbers.
RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float64": (-(2**53), 2**53),
    "float32": (-(2**24), 2**24),
    "uint16": (0, 65535),
}

# name: (dtype, multimodal, parts in order)
MERGES = {
    "merge_a_e_a": ("uint16", False, ["idx_uint16_3docs", "idx_empty", "idx_uint16_3docs"]),
    "merge_e_a": ("uint16", False, ["idx_empty", "idx_uint16_3docs"]),
    "merge_mm": ("int32", True, ["idx_mm", "idx_mm"]),
}

# name: (input, tokenizer, append_eod)
RUNS = {
    "preprocess_null": ("preprocess_null.jsonl", "null:1000", True),
    "preprocess_lines": ("preprocess_lines.jsonl", "byte", False),
    "preprocess_lines_eod": ("preprocess_lines.jsonl", "byte", True),
}


def dtype_case(dtype):
    """Empty documents first, in the middle and last, an empty sequence, both ends of the range."""
    low, high = RANGES[dtype]
    return dtype, False, [[], [[1, 2, 3]], [], [[low, 0, high], [], [100]], [[7]], []]
