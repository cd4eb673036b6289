# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, which say in a sentence what was given and what is expected."""
import numbers
import operator
import os
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from millrace._errors import ConfigError

Path: TypeAlias = "str | os.PathLike[str]"


def integer(name: str, value: Any) -> int:
    """An int of 64 bits. Takes what has `__index__`, such as integers of numpy, but no bool."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an int") from None
    if not -2**63 <= number < 2**63:
        raise ConfigError(f"{name} is {number}, which does not fit into 64 bits")
    return number


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, expected True or False")
    return bool(value)


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected a str")
    return value


def strings(name: str, value: Any) -> "list[str]":
    """A list of strings, but not one string, which would be taken for a list of letters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is {value!r}, expected a list of strings")
    return [string(f"an element of {name}", each) for each in value]


def path(name: str, value: Any) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{name} is {value!r}, expected a path: a str or an os.PathLike of str")
    return text


def words(name: str, value: Any) -> "list[str | float]":
    """Prefixes and weights, such as [0.3, "a", 0.7, "b"]. One prefix need not be in a list."""
    if isinstance(value, (str, os.PathLike)):
        return [path(name, value)]
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is {value!r}, expected a list of prefixes, or of weights and prefixes")
    return [number(name, each) if isinstance(each, numbers.Real) else path(f"an element of {name}", each)
            for each in value]


def number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{value!r} in {name} is not a number")
    return float(value)


def blend(value: Any) -> "tuple[list[str], list[float | str] | None]":
    """(prefixes, weights): weights may be numbers, or strings of numbers, or None."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) or len(pair := list(value)) != 2:
        raise TypeError(f"blend is {value!r}, expected (prefixes, weights), where weights may be None")
    prefixes, weights = pair
    if isinstance(prefixes, (str, os.PathLike)):
        prefixes = [prefixes]
    if isinstance(prefixes, bytes) or not isinstance(prefixes, Iterable):
        raise TypeError(f"the prefixes of blend are {prefixes!r}, expected a list of paths")
    if weights is not None and (isinstance(weights, (str, bytes)) or not isinstance(weights, Iterable)):
        raise TypeError(f"the weights of blend are {weights!r}, expected a list of numbers, or None")
    return ([path("a prefix of blend", each) for each in prefixes],
            None if weights is None else
            [each if isinstance(each, str) else number("the weights of blend", each) for each in weights])
