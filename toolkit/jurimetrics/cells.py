"""One cell of somebody's table -> one clean Python value, the same for files, frames and dictionaries.

Every reader returns ``None`` (or ``()``) for a missing cell and raises :class:`InputError` that says what was
expected and what was found; who calls it adds file, row and column.
"""

from __future__ import annotations

import ast
import json
import math
import numbers
import re
import warnings
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.text import is_blank

# ASCII only: float() would also take "nan", "1_000" and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_SHOWN = 60
# From here on a float no longer tells neighbouring integers apart, so printing all digits would invent some.
_EXACT_FLOATS = 2.0**53
COUNT_LIMIT = 2**63
"""The first whole number that a column of them no longer holds."""


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: ``None``, NaN of any type, ``pd.NA`` or ``NaT``. Text is never missing here.

    >>> [is_missing(v) for v in (None, float("nan"), pd.NA, pd.NaT, "", "NA", 0, [])]
    [True, True, True, True, False, False, False, False]
    """
    if isinstance(value, str):
        return False
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def show(value: object) -> str:
    """A value as an error message quotes it: its ``repr`` on one line, cut visibly after 60 characters.

    >>> show("x" * 100)[-12:]
    'xxx... (str)'
    """
    try:
        text = " ".join(repr(value).splitlines())
    except Exception:  # noqa: BLE001 - an object that cannot be shown is still named by its type
        return f"a value of the type {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({type(value).__name__})"


def clean_text(text: str) -> str:
    r"""Text that can be encoded: a lone surrogate (half of a cut-off emoji) becomes U+FFFD, two halves are joined.

    Everything else, NUL included, stays as it is.

    >>> clean_text("cut \ud83d off"), clean_text("\ud83d\ude00") == "\U0001f600"
    ('cut \ufffd off', True)
    """
    if text.isascii():
        return str(text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str(text)


def read_text(value: object) -> str | None:
    """A cell of text. A number or a truth value is taken as its text: 42 and 42.0 are "42", ``True`` is "true" (as JSON
    writes it). Lists, dictionaries, bytes and dates are refused.

    >>> read_text("NA"), read_text(42.0), read_text(0.5), read_text(True), read_text(None)
    ('NA', '42', '0.5', 'true', None)
    """
    if isinstance(value, str):
        return clean_text(value)
    if is_missing(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        try:
            return str(int(value))
        except ValueError:
            raise InputError("expected text, found an integer of more digits than can be written") from None
    if isinstance(value, (float, np.floating, Decimal)):
        whole = abs(float(value)) < _EXACT_FLOATS and value == int(value)
        return str(int(value)) if whole else str(value)
    raise InputError(f"expected text, found {show(value)}")


def read_filled_text(value: object) -> str | None:
    """A cell of text where blank means missing (model, error).

    >>> read_filled_text("  "), read_filled_text(" a ")
    (None, ' a ')
    """
    text = read_text(value)
    return None if text is None or not text.strip() else text


def read_shown_text(value: object) -> str | None:
    r"""A cell of text that a judge is shown (question, reference): missing where nothing in it can be read.

    >>> read_shown_text("\u200b"), read_shown_text(" a ")
    (None, ' a ')
    """
    text = read_text(value)
    return None if text is None or is_blank(text) else text


def read_id(value: object) -> str | None:
    """An identifier as text: "007" stays "007"; 7, 7.0 and "7" are all "7"; blank is missing. Truth values are refused.

    Spaces are kept, so that a later join with the caller's own table still matches.

    >>> read_id("007"), read_id(7), read_id(7.0), read_id(" ")
    ('007', '7', '7', None)
    """
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"expected text or a number, found {show(value)}")
    if isinstance(value, (float, np.floating)) and math.isinf(value):
        raise InputError(f"expected text or a finite number, found {show(value)}")
    return read_filled_text(value)


def read_finite(value: object) -> float | None:
    """A finite number, also written as text ("1.5"). Blank is missing; "nan", "1,5" and truth values are refused.

    >>> read_finite(" 1.5 "), read_finite(np.float32(2)), read_finite(""), read_finite(pd.NA)
    (1.5, 2.0, None, None)
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
    elif isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = math.nan
    else:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"expected a number, found {show(value)}")
    return number


def read_amount(value: object) -> float | None:
    """A finite number that is not negative: seconds, dollars.

    >>> read_amount("0.25")
    0.25
    """
    number = read_finite(value)
    if number is not None and number < 0:
        raise InputError(f"expected a number of at least 0, found {show(value)}")
    return number


def read_count(value: object) -> int | None:
    """A whole number that is not negative: tokens. 12.0 and "12" are 12; 12.5 is refused.

    >>> read_count(12.0), read_count("12"), read_count(None)
    (12, 12, None)
    """
    number = read_amount(value)
    if number is not None and number != int(number):
        raise InputError(f"expected a whole number, found {show(value)}")
    if number is not None and number >= COUNT_LIMIT:
        raise InputError(f"expected a whole number below 2**63, found {show(value)}")
    return None if number is None else int(number)


def read_documents(value: object) -> tuple[str, ...]:
    """Documents as a tuple: a list, tuple or array of strings, or one string, which is one document whatever it says.

    Missing and blank documents are removed, because a judge shown an empty document imagines support. ``()`` is none.

    >>> read_documents(["a", None, " ", "b"]), read_documents('["a"]'), read_documents(None)
    (('a', 'b'), ('["a"]',), ())
    """
    if isinstance(value, str):
        value = (value,)
    elif is_missing(value):
        return ()
    if not isinstance(value, (list, tuple, np.ndarray, pd.Series, pd.api.extensions.ExtensionArray)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    ):
        raise InputError(f"expected a list of strings or one string, found {show(value)}")
    found = []
    for position, document in enumerate(value, 1):
        if not isinstance(document, str) and not is_missing(document):
            raise InputError(f"expected a list of strings, document {position} is {show(document)}")
        if isinstance(document, str) and not is_blank(document):
            found.append(clean_text(document))
    return tuple(found)


def split_documents_cell(cell: str) -> list[Any] | str:
    """The documents in one CSV cell: a JSON list, or a list as ``DataFrame.to_csv`` prints it; else the text itself.

    The printed form counts only if printing the list again gives the same characters: ``['a' 'b']``, a printed numpy
    array, would otherwise be read as one joined document. A cell that looks like a list and is none is warned about.

    >>> split_documents_cell('["a", "b"]'), split_documents_cell("['a', 'b']"), split_documents_cell("[1] says so")
    (['a', 'b'], ['a', 'b'], '[1] says so')
    """
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return cell
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _printed_list(text)
    if isinstance(found, list):
        return found
    if text.startswith(("['", '["')):
        warnings.warn(
            f"contexts {show(cell)} looks like a list but is not a JSON list: taken as one document", stacklevel=2
        )
    return cell


def _printed_list(text: str) -> list[Any] | None:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, list) and repr(found) == text else None


def plain(value: object) -> Any:
    """A value that JSON can hold, for metadata: numpy and pandas scalars become Python's, arrays and tuples lists,
    dates ISO text; a missing value inside a list or dictionary is ``None``; infinities and other objects are text.

    >>> plain({"n": np.int64(3), "v": (1.5, float("nan")), "day": pd.Timestamp("2024-05-01")})
    {'n': 3, 'v': [1.5, None], 'day': '2024-05-01T00:00:00'}
    """
    if isinstance(value, str):
        return clean_text(value)
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {clean_text(str(name)): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray, pd.Series)):
        return [plain(inner) for inner in value]
    return clean_text(value.isoformat() if hasattr(value, "isoformat") else str(value))
