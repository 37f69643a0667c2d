"""dtypes: Turnout's own objects, one per element type.

A `DType` is a singleton: compare with `is`. Backends map them to their own types; nothing here knows an array library.
"""

from __future__ import annotations

from turnout.errors import DTypeError, printed

__all__ = ["ALIASES", "BOOL", "COMPLEX", "DTYPES", "DType", "FLOAT", "INT", "PYTHON_TYPES", "bfloat16", "bool_",
    "complex128", "complex64", "dtype_named", "float16", "float32", "float64", "get_default_dtype", "int16", "int32", "int64",
    "int8", "set_default_dtype", "uint16", "uint32", "uint64", "uint8"]  # fmt: skip

# In this order: a result is never written into a dtype of a lower category.
BOOL, INT, FLOAT, COMPLEX = 0, 1, 2, 3


class DType:
    """One element type.

    Attributes: `name` ("float32"), `itemsize` in bytes, `category` (BOOL, INT, FLOAT or COMPLEX), `is_signed`, and `kind`, as
    array libraries write it: "b" for bool, "i" and "u" for integers, "f" and "c".
    """

    __slots__ = ("category", "is_signed", "itemsize", "kind", "name")
    schema_type = "ScalarType"

    def __init__(self, name: str, itemsize: int, category: int, is_signed: bool) -> None:
        self.name = name
        self.itemsize = itemsize
        self.category = category
        self.is_signed = is_signed
        self.kind = "u" if category == INT and not is_signed else "bifc"[category]

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a floating-point dtype."""
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype."""
        return self.category == COMPLEX

    def to_real(self) -> DType:
        """The dtype of the real part: float32 for complex64, itself otherwise."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype that holds its values: complex128 for float64, else complex64."""
        return complex128 if self in (float64, complex128) else complex64

    def __repr__(self) -> str:
        return f"turnout.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (dtype_named, (self.name,))


# fmt: off
float16    = DType("float16",    2, FLOAT,   True)
bfloat16   = DType("bfloat16",   2, FLOAT,   True)
float32    = DType("float32",    4, FLOAT,   True)
float64    = DType("float64",    8, FLOAT,   True)
int8       = DType("int8",       1, INT,     True)
int16      = DType("int16",      2, INT,     True)
int32      = DType("int32",      4, INT,     True)
int64      = DType("int64",      8, INT,     True)
uint8      = DType("uint8",      1, INT,     False)
uint16     = DType("uint16",     2, INT,     False)
uint32     = DType("uint32",     4, INT,     False)
uint64     = DType("uint64",     8, INT,     False)
bool_      = DType("bool",       1, BOOL,    False)
complex64  = DType("complex64",  8, COMPLEX, True)
complex128 = DType("complex128", 16, COMPLEX, True)
# fmt: on

_REAL = (float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_)
DTYPES: dict[str, DType] = {d.name: d for d in (*_REAL, complex64, complex128)}

# What Python's types mean at `dtype=`.
PYTHON_TYPES: dict[type, DType] = {float: float64, int: int64, bool: bool_, complex: complex128}

# PyTorch's other names of the same types.
ALIASES: dict[str, DType] = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip


def dtype_named(name: str) -> DType:
    """The dtype of a name, or of a PyTorch alias such as "half". Raises DTypeError for other names."""
    found = DTYPES.get(name) or ALIASES.get(name)
    if found is None:
        raise DTypeError(f"no dtype is named {name!r}; the dtypes are {', '.join(DTYPES)}")
    return found


DEFAULT: list[DType] = [float32]


def get_default_dtype() -> DType:
    """The dtype of new tensors made from Python floats, at first float32.

    Example:
        >>> turnout.get_default_dtype()
        turnout.float32
    """
    return DEFAULT[0]


def set_default_dtype(dtype: DType) -> None:
    """Set the default dtype of the process. Raises DTypeError unless it is a floating-point dtype.

    Arguments:
        dtype: the dtype of new tensors made from Python floats

    Example:
        >>> turnout.set_default_dtype(turnout.float32)
    """
    if not (isinstance(dtype, DType) and dtype.category == FLOAT):
        raise DTypeError(f"the default dtype must be a floating-point dtype, got {printed(dtype)}")
    DEFAULT[0] = dtype
