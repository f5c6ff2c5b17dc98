"""The closed list of what an expression may be made of: parts and functions whose value follows from their arguments.

A spec, and the spec of a model, may come from anyone. Its expressions are worked out on the machine of whoever reads
it: so nothing is called that looks at the clock, at settings, files, variables or chance, that another version of the
database may answer otherwise, or that makes texts far longer than its arguments. The functions of texts that a server
works out are another list, in the words of that server: `ddl_functions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from privbench.deferred import exp

MAX_DEPTH = 100
"""Parts inside parts; a chain of ANDs, or of ORs, counts as one."""
LONGEST_TEXT = 100_000
"""No expression makes longer texts of columns that hold ..."""
COLUMN_TEXT = 1_000
"""... texts of this length."""
_NUMBER_TEXT = 64
"""A number, a date or a hash as text is shorter."""
_MOST_OF_DATE = 32
"""A letter of a format stands for fewer letters of a date."""

_PARTS = frozenset(
    (
        *("Column", "Identifier", "Literal", "Boolean", "Null", "HexString", "BitString", "ByteString", "National"),
        *("Paren", "Tuple", "Star", "Distinct", "Var", "Interval", "DataType", "DataTypeParam"),
        *("And", "Or", "Not", "Xor", "Is", "Between", "In", "Like", "ILike", "Escape", "SimilarTo", "Glob"),
        *("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ", "NullSafeNEQ", "Case", "If", "Cast", "TryCast"),
        *("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "Neg", "Pow", "DPipe", "SafeDPipe"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitwiseLeftShift", "BitwiseRightShift"),
        *("JSONExtract", "JSONExtractScalar", "JSONPath", "JSONPathRoot", "JSONPathKey", "JSONPathSubscript"),
    )
)
"""Names, constants and operators, as sqlglot calls them."""
_FUNCTIONS = frozenset(
    (
        *("Abs", "Acos", "Ascii", "Asin", "Atan", "Atan2", "Avg", "BitLength", "Cbrt", "Ceil", "Chr", "Coalesce"),
        *("Concat", "ConcatWs", "Contains", "Cos", "Cosh", "Cot", "Count", "DateDiff", "DateFromParts"),
        *("Day", "DayOfMonth", "DayOfWeek", "DayOfWeekIso", "DayOfYear", "Dayname", "Degrees", "EndsWith", "Exp"),
        *("Extract", "Floor", "Greatest", "Hex", "Hour", "IsInf", "IsNan", "JSONType", "LastDay", "Least", "Left"),
        *("Length", "Ln", "Log", "Lower", "MD5", "Max", "Min", "Minute", "Month", "Monthname", "Nullif", "Overlay"),
        *("Pad", "Pi", "Quarter", "Radians", "RegexpExtract", "RegexpFullMatch", "RegexpLike", "RegexpReplace"),
        *("Repeat", "Replace", "Reverse", "Right", "Round", "RowNumber", "SHA", "SHA2", "Second", "Sign", "Sin"),
        *("Sinh", "SplitPart", "Sqrt", "StartsWith", "StrPosition", "StrToTime", "Substring", "Sum", "Tan", "Tanh"),
        *("TimeFromParts", "TimeToStr", "TimeToUnix", "TimestampFromParts", "TimestampTrunc", "ToDays", "Translate"),
        *("Trim", "Trunc", "Unicode", "UnixToTime", "Upper", "Week", "WeekOfYear", "Year"),
    )
)
"""Functions, as sqlglot calls them."""
_BY_NAME = frozenset(
    (
        *("age", "bit_count", "century", "date_part", "date_sub", "datepart", "datesub", "decade", "era", "even"),
        *("gcd", "isfinite", "isoyear", "json_array_length", "json_valid", "julian", "lcm", "microsecond"),
        *("millisecond", "octet_length", "ord", "prefix", "strip_accents", "strlen", "suffix", "to_hours"),
        *("to_minutes", "to_months", "to_seconds", "to_weeks", "to_years", "try_strptime", "weekday", "yearweek"),
    )
)
"""Functions that sqlglot does not know, as DuckDB calls them. docs/spec.md lists these and those above."""
_PATTERNS = ("RegexpLike", "RegexpFullMatch", "RegexpExtract", "RegexpReplace", "SimilarTo")
_GROWING = ("Repeat", "Pad", "Replace", "RegexpReplace", "Concat", "ConcatWs", "DPipe", "SafeDPipe", "TimeToStr", "Hex")


def why_refused(tree: exp.Expr) -> str | None:
    """Say what an expression is made of that it must not be; None if all of it is on the list."""
    if (deep := _depth(tree)) > MAX_DEPTH:
        return f"it has {deep} parts inside each other, at most {MAX_DEPTH} are allowed. Write it flatter"
    for node in tree.walk():
        kind = type(node).__name__
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in _BY_NAME:
                return _unknown(node)
            if node.name.lower() == "age" and len(node.expressions) != 2:
                return "AGE of one date depends on the day. Write AGE(a, b)"
        elif kind not in _PARTS and kind not in _FUNCTIONS:
            return _unknown(node)
        if isinstance(node, exp.DataType) and not _is_plain(node):
            return f"{_shown(node)} is no plain type of single values. Cast to another one"
        if kind in _PATTERNS and not _is_constant(node.args.get("expression")):
            return f"the pattern of {_shown(node)} is no constant. Write it as a text"
        if kind in _GROWING and (why := _why_too_long(node)) is not None:
            return why
    return None


def _unknown(node: exp.Expr) -> str:
    return (
        f"{_shown(node)} is not among the functions that an expression may call: those whose value follows from their "
        "arguments alone, in every version (docs/spec.md lists them)"
    )


def _shown(node: exp.Expr) -> str:
    return node.sql("duckdb")[:80]


def _depth(tree: exp.Expr) -> int:
    """How many parts are inside each other, without recursion: the tree may be deeper than Python's stack."""
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            chained = type(child) is type(node) and isinstance(node, exp.Connector)
            waiting.append((child, depth if chained else depth + 1))
    return deepest


def _is_plain(kind: exp.DataType) -> bool:
    """Whether values of a type are single ones."""
    known = (*exp.DataType.TEXT_TYPES, *exp.DataType.NUMERIC_TYPES, *exp.DataType.TEMPORAL_TYPES)
    names = ("BOOLEAN", "UUID", "BINARY", "VARBINARY", "BLOB", "INTERVAL", "BIT", "JSON", "TIME", "TIMETZ")
    return kind.this in known or getattr(kind.this, "name", None) in names


def _is_constant(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _why_too_long(node: exp.Expr) -> str | None:
    """Say why texts would be too long; None if they are not."""
    if isinstance(node, exp.Repeat | exp.Pad) and _count(node) is None:
        return f"the number in {_shown(node)} is no constant. Write a whole number"
    if isinstance(node, exp.TimeToStr) and not _is_constant(node.args.get("format")):
        return f"the format of {_shown(node)} is no constant. Write it as a text"
    longest = _length(node)
    if longest > LONGEST_TEXT:
        return (
            f"{_shown(node)} could make texts of {longest:,} characters, of columns that hold {COLUMN_TEXT:,}; at most "
            f"{LONGEST_TEXT:,} are allowed. Write smaller numbers or fewer repetitions"
        )
    return None


def _count(node: exp.Expr) -> int | None:
    """The number of repetitions, or of characters to pad to, if it is a constant."""
    number = node.args.get("times" if isinstance(node, exp.Repeat) else "expression")
    if isinstance(number, exp.Neg):
        return 0 if isinstance(number.this, exp.Literal) and number.this.is_int else None
    return int(number.name) if isinstance(number, exp.Literal) and number.is_int and not number.is_string else None


def _length(node: exp.Expr | None) -> int:
    """About how long the text of an expression is at most, given that of columns."""
    if node is None:
        return 0
    if isinstance(node, exp.Column):
        return COLUMN_TEXT
    if isinstance(node, exp.Literal):
        return len(node.name)
    if isinstance(node, exp.Repeat):
        return _length(node.this) * (_count(node) or 0)
    if isinstance(node, exp.Pad):
        return max(_count(node) or 0, 0)
    if isinstance(node, exp.Replace):
        found, put = node.args.get("expression"), _length(node.args.get("replacement"))
        shortest = max(len(found.name), 1) if isinstance(found, exp.Literal) else 1
        return _length(node.this) * max(1, ceil(put / shortest))
    if isinstance(node, exp.RegexpReplace):
        return (_length(node.this) + 1) * (_length(node.args.get("replacement")) + 1)
    if isinstance(node, exp.TimeToStr):
        return _MOST_OF_DATE * len(node.args["format"].name) if _is_constant(node.args.get("format")) else 0
    if isinstance(node, exp.Hex):
        return 2 * _length(node.this)
    lengths = _lengths(node.iter_expressions())
    if isinstance(node, exp.ConcatWs):
        return sum(lengths) + lengths[0] * len(lengths)
    return sum(lengths) if isinstance(node, exp.Concat | exp.DPipe) else max([_NUMBER_TEXT, *lengths])


def _lengths(nodes: Iterable[exp.Expr]) -> list[int]:
    return [_length(node) for node in nodes]
