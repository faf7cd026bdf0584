"""A strict stand-in for CuPy and cupyx.scipy.sparse: finds on the host what would fail, or wait, on a GPU.

An `Array` holds a NumPy array and is not one. Whatever would cross between host and device without a word
raises TypeError; what crosses by name is counted in `crossings`; what nothing has waited for has no address.
`xp` stands for the module cupy and offers the functions in `NAMES`, no more; `sparse` for cupyx.scipy.sparse.

    standin.crossings.reset()
    y = 2 * standin.put(np.arange(3.0))
    standin.stream.synchronize()
    standin.host(y), y.mpi_buffer()          # neither is counted
    float(y.sum()), standin.crossings.count  # 6.0, 1

Where it is stricter than CuPy: iteration, pickling, `numpy.f(x)`, a sort without kind="stable", a weighted
bincount, repeated indices in an assignment, and an address or a copy by get and set of what is not row-major
are refused.
"""

import operator
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

POISON_BYTE = 0x5A  # what unset integers are made of


class Crossings:
    """How often data crossed, and how often a size had to be waited for, since the last `reset`.

    count   device to host by get, item, tolist, float, int or bool
    puts    host to device by put, asarray or set
    waits   results whose shape depends on the data (a mask, nonzero, unique, ...): CuPy waits for the device
    """

    def __init__(self):
        self.reset()

    def reset(self):
        self.count = self.puts = self.waits = 0


class Stream:
    """The queue of operations; an array has an address once everything issued on it is done."""

    def __init__(self):
        self.issued = self.done = 0

    def issue(self):
        self.issued += 1
        return self.issued

    def synchronize(self):
        self.done = self.issued


class Memory:
    """When this piece of memory, which several views may share, was last written."""

    def __init__(self):
        self.written = stream.issue()


crossings = Crossings()
stream = Stream()


tape = None  # while a stream captures (tests/emulator.py): what a replay does, in turn


def _words(text):
    return text.split()


def _must_not_capture(what):
    """Refuse what waits for the device, or brings host memory to it, while launches are only recorded."""
    if tape is not None:
        raise RuntimeError(f"cudaErrorStreamCaptureUnsupported: {what}")


def _do(compute, *sources, out=None):
    """The wrapped result of an operation; a replay does it again, into the same memory."""
    if tape is None:
        return _finish(compute(), out, *sources)
    if out is not None:
        _change(compute)
        return _finish(None, out)
    wrapped = _up(compute(), *sources)

    def again():
        found = compute()
        if isinstance(wrapped, tuple):
            for old, new in zip(wrapped, found):
                np.copyto(old._host, new)
        else:
            np.copyto(wrapped._host, found)

    tape.append(again)
    return wrapped


def _change(work):
    """Work that writes into an array: while a stream captures it is only written down."""
    if tape is None:
        work()
    else:
        tape.append(work)


def _scalar(value):
    """True for what CuPy takes as a number: Python and NumPy scalars and arrays without dimensions."""
    plain = isinstance(value, (bool, int, float, complex, np.generic))
    return plain or (isinstance(value, np.ndarray) and value.ndim == 0)


def _operand(value):
    """The host array of an Array, or the number itself; anything else would be an implicit copy."""
    if isinstance(value, Array):
        return value._host
    if _scalar(value):
        return value
    raise TypeError(f"implicit copy to the device: {type(value).__name__} as operand; put it there first")


def _index(key):
    """The NumPy form of an index, with an Ellipsis: then a single element is a view without dimensions."""
    parts = key if isinstance(key, tuple) else (key,)
    out = []
    for part in parts:
        if part is None or part is Ellipsis or isinstance(part, slice):
            out.append(part)
        else:
            out.append(_operand(part))
    return tuple(out) if any(part is Ellipsis for part in parts) else (*out, Ellipsis)


def _masked(index):
    """True if part of the index is an array of booleans."""
    return any(isinstance(part, np.ndarray) and part.dtype == bool for part in index)


def _check_distinct(index):
    """Refuse positions that an assignment would hit twice: which value wins is not defined on a GPU."""
    arrays = [p for p in index if isinstance(p, np.ndarray) and p.ndim > 0 and p.dtype != bool]
    if arrays:
        hits = np.stack([p.ravel() for p in np.broadcast_arrays(*arrays)])
        if np.unique(hits, axis=1).shape[1] < hits.shape[1]:
            raise ValueError("assignment through repeated indices has no defined winner on a GPU")


def _up(result, *sources):
    """Wrap a host result; a view shares the state of its source's memory, all else is newly written."""
    if isinstance(result, (tuple, list)):
        return tuple(_up(part, *sources) for part in result)
    result = np.asarray(result)
    for source in sources:
        if isinstance(source, Array) and np.may_share_memory(result, source._host):
            return Array(result, source._memory)
    return Array(result, Memory())


def _poison(array):
    """Fill with what shows when it is read before it is written: NaN, a large integer, True."""
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    elif array.dtype == bool:
        array.fill(True)
    else:
        array.fill(np.frombuffer(bytes([POISON_BYTE]) * array.itemsize, dtype=array.dtype)[0])
    return array


class Array:
    """An array on the pretended device; made by `put` and by the functions of `xp`."""

    __array_ufunc__ = None  # NumPy's operators leave a mixed expression to this class, which refuses it
    __hash__ = None

    def __init__(self, host_array, memory):
        self._host = host_array
        self._memory = memory

    # What it looks like: no crossing.
    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: self.transpose())
    data = property(lambda self: SimpleNamespace(ptr=self._host.ctypes.data))

    @property
    def flags(self):
        flags = self._host.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=flags.owndata
        )

    def __len__(self):
        return len(self._host)

    def __repr__(self):
        return f"standin.Array(shape={self.shape}, dtype={self.dtype})"

    # Implicit crossings: refused.
    def __array__(self, *args, **kwargs):
        raise TypeError("implicit copy to the host: use get()")

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"numpy.{func.__name__} of a device array: use xp.{func.__name__}")

    def __iter__(self):
        raise TypeError("iterating over a device array: one crossing per element")

    def __reduce_ex__(self, protocol):
        raise TypeError("pickling a device array is an implicit copy to the host: use get()")

    # Explicit crossings: counted. As in CuPy there is no __index__: no range(x), no x[:y].
    def get(self, stream=None, out=None, blocking=True):
        _must_not_capture("get")
        crossings.count += 1
        self._must_be_row_major("get")
        if out is None:
            return self._host.copy()
        if out.shape != self.shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ValueError("get: out must be row-major and have the array's shape and dtype")
        out[...] = self._host
        return out

    def set(self, values, stream=None):
        _must_not_capture("set")
        crossings.puts += 1
        self._must_be_row_major("set")
        if not isinstance(values, np.ndarray) or (values.shape, values.dtype) != (self.shape, self.dtype):
            raise ValueError("set: needs a host array of the same shape and dtype")
        self._host[...] = values
        self._write()

    def _must_be_row_major(self, what):
        """Refuse what CuPy copies through a temporary array, with the default stream current afterwards."""
        if not self._host.flags.c_contiguous:
            raise ValueError(f"{what}: {self.shape} by strides {self.strides} is not row-major")

    def item(self, *args):
        _must_not_capture("a number for the host")
        crossings.count += 1
        return self._host.item(*args)

    def tolist(self):
        _must_not_capture("a number for the host")
        crossings.count += 1
        return self._host.tolist()

    def __float__(self):
        _must_not_capture("a number for the host")
        crossings.count += 1
        return float(self._host)

    def __int__(self):
        _must_not_capture("a number for the host")
        crossings.count += 1
        return int(self._host)

    def __bool__(self):
        _must_not_capture("a number for the host")
        crossings.count += 1
        return bool(self._host)

    # Its address: only once nothing is pending, and only of row-major memory.
    def mpi_buffer(self):
        """The memory itself, for MPI to read and write; raises while an operation on it may be pending."""
        if self._memory.written > stream.done:
            raise RuntimeError("the device may still be writing this array: synchronize first")
        if not self._host.flags.c_contiguous:
            raise TypeError(
                "MPI would take a buffer that is not row-major for one that is: make it contiguous"
            )
        return self._host

    @property
    def __cuda_array_interface__(self):
        buffer = self.mpi_buffer()
        address = (buffer.ctypes.data, not buffer.flags.writeable)
        return {"shape": buffer.shape, "typestr": buffer.dtype.str, "data": address, "version": 3}

    # Elements.
    def __getitem__(self, key):
        index = _index(key)
        if _masked(index):
            _must_not_capture("a mask as index")
            crossings.waits += 1
        return _do(lambda: self._host[index], self)

    def __setitem__(self, key, value):
        index, operand = _index(key), _operand(value)
        _check_distinct(index)
        _change(lambda: self._host.__setitem__(index, operand))
        self._write()

    def _write(self):
        self._memory.written = stream.issue()

    def fill(self, value):
        operand = _operand(value)
        _change(lambda: self._host.fill(operand))
        self._write()

    def nonzero(self):
        crossings.waits += 1
        return _up(self._host.nonzero())

    def argsort(self, axis=-1, kind=None):
        return xp.argsort(self, axis=axis, kind=kind)


def _method(name):
    def method(self, *args, out=None, **kwargs):
        # Shapes and axes may be tuples; arrays among the arguments must be device arrays.
        args = [a if isinstance(a, (tuple, str, type, np.dtype, type(None))) else _operand(a) for a in args]
        _refuse(name, args, kwargs)
        if out is not None:
            kwargs["out"] = _operand(out)
        return _do(lambda: getattr(self._host, name)(*args, **kwargs), self, out=out)

    method.__name__ = name
    return method


def _finish(result, out, *sources):
    """`out`, marked as written, where one was given, else the wrapped result."""
    if out is None:
        return _up(result, *sources)
    out._write()
    return out


def _binary(function, swapped=False):
    def method(self, other):
        a, b = self._host, _operand(other)
        return _do(lambda: function(b, a) if swapped else function(a, b))

    return method


def _unary(function):
    return lambda self: _do(lambda: function(self._host))


def _in_place(function):
    def method(self, other):
        operand = _operand(other)
        _change(lambda: function(self._host, operand))
        self._write()
        return self

    return method


METHODS = _words("""
    sum max min argmax argmin any all cumsum take astype view copy reshape ravel transpose clip round
""")
ARITHMETIC = _words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift")
COMPARISONS = _words("eq ne lt le gt ge")
UNARY = _words("neg pos abs invert")

for _name in METHODS:
    setattr(Array, _name, _method(_name))
for _name in ARITHMETIC:
    setattr(Array, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
    setattr(Array, f"__r{_name}__", _binary(getattr(operator, f"__{_name}__"), swapped=True))
    if _name != "matmul":
        setattr(Array, f"__i{_name}__", _in_place(getattr(operator, f"__i{_name}__")))
for _name in COMPARISONS:
    setattr(Array, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
for _name in UNARY:
    setattr(Array, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))


# The module: every name is cupy's, and a test checks that cupy has it.
ELEMENTWISE = _words("""
    where maximum minimum sqrt square abs exp log log1p sign multiply add subtract divide floor frexp ldexp
    isnan isfinite logical_and logical_or logical_not bitwise_and bitwise_or left_shift right_shift clip
""")
OF_ONE_ARRAY = _words("""
    ascontiguousarray sum max min argmax argmin argsort sort partition take cumsum flatnonzero nonzero unique
    any
    all count_nonzero searchsorted bincount matmul ravel zeros_like ones_like full_like array_equal
""")
WITH_SEQUENCES = _words("zeros ones full arange concatenate stack broadcast_to tile repeat")
UNSET = _words("empty empty_like")
CONSTANTS = _words("""
    float32 float64 int8 int32 int64 uint8 uint16 uint32 uint64 bool_ dtype newaxis inf nan iinfo finfo
""")
SHAPE_WAITS = {"flatnonzero", "nonzero", "unique", "bincount"}
NAMES = [*ELEMENTWISE, *OF_ONE_ARRAY, *WITH_SEQUENCES, *UNSET, *CONSTANTS, "asarray", "asnumpy", "ndarray"]


def _argument(value, sequences):
    """One argument of a function of `xp` in its host form; lists only where they mean something."""
    if value is None or isinstance(value, (str, type, np.dtype)):
        return value
    if sequences and isinstance(value, (list, tuple)):
        return type(value)(_operand(part) for part in value)
    return _operand(value)


def _function(name):
    numpy_function = getattr(np, name)
    sequences = name in WITH_SEQUENCES or name in UNSET

    def function(*args, out=None, **kwargs):
        _refuse(name, args, kwargs)
        down = [_argument(a, sequences) for a in args]
        named = {key: _argument(value, True) for key, value in kwargs.items()}
        if out is not None:
            named["out"] = _operand(out)
        if name in SHAPE_WAITS or (name == "where" and len(args) == 1):
            _must_not_capture(name)
            crossings.waits += 1

        def compute():
            result = numpy_function(*down, **named)
            return _poison(result) if name in UNSET else result

        return _do(compute, *args, out=out)

    function.__name__ = name
    return function


def _refuse(name, args, kwargs):
    """What NumPy allows and CuPy, or the order of floating-point additions, does not."""
    if "initial" in kwargs or "where" in kwargs:
        raise TypeError(f"{name}: CuPy has no initial= and where=")
    if name in ("argsort", "sort") and kwargs.get("kind") != "stable":
        raise TypeError(f'{name}: say kind="stable"; the default differs between NumPy and CuPy')
    if name == "bincount" and (len(args) > 1 or kwargs.get("weights") is not None):
        raise TypeError("bincount: a weighted one adds floating-point numbers in no defined order")
    if name == "repeat" and any(isinstance(a, Array) for a in [*args[1:], kwargs.get("repeats")]):
        raise TypeError("repeat: CuPy before 14 takes the numbers of repeats from the host only")


def put(array):
    """The host array (or number, or list of numbers) on the device: an explicit, counted copy."""
    if isinstance(array, Array):
        raise TypeError("put: the array is on the device")
    _must_not_capture("put")
    crossings.puts += 1
    return Array(np.array(array), Memory())


def host(x):
    """The host array behind `x`, for a test to look at: not counted."""
    return x._host if isinstance(x, Array) else np.asarray(x)


def _asarray(a, dtype=None):
    return a.astype(dtype or a.dtype, copy=False) if isinstance(a, Array) else put(np.asarray(a, dtype=dtype))


def _asnumpy(a, stream=None):
    return a.get() if isinstance(a, Array) else np.asarray(a)


class csr_matrix:
    """A CSR matrix on the device; floating-point data, 32-bit indices, column-major products.

    arrays   (data, indices, indptr), all on the device
    """

    __array_ufunc__ = None

    def __init__(self, arrays, shape):
        data, indices, indptr = arrays
        for array in arrays:
            if not isinstance(array, Array):
                raise TypeError(f"csr_matrix: {type(array).__name__} is not a device array")
        if data.dtype not in (np.float32, np.float64):
            raise ValueError(f"csr_matrix: data must be float32 or float64, got {data.dtype}")
        self.data, self.shape, self.dtype, self.nnz = data, tuple(shape), data.dtype, data.size
        self.indices, self.indptr = indices.astype(np.int32), indptr.astype(np.int32)
        self._host = sp.csr_array((host(data), host(self.indices), host(self.indptr)), shape=self.shape)

    @property
    def has_canonical_format(self):
        """True where the columns of every row ascend: other matrices are refused by cupyx.cusparse."""
        inside = np.diff(np.repeat(np.arange(self.shape[0]), np.diff(self._host.indptr))) == 0
        return bool((np.diff(self._host.indices)[inside] > 0).all())

    def __matmul__(self, dense):
        if not isinstance(dense, Array):
            raise TypeError(f"sparse product with {type(dense).__name__}: put it on the device first")
        # cuSPARSE works on column-major operands and returns one.
        return _up(np.asfortranarray(self._host @ dense._host))

    def __rmatmul__(self, dense):
        raise TypeError("dense times sparse: transpose both")

    def toarray(self):
        return _up(self._host.toarray())


xp = SimpleNamespace(
    **{name: _function(name) for name in [*ELEMENTWISE, *OF_ONE_ARRAY, *WITH_SEQUENCES, *UNSET]},
    **{name: getattr(np, name) for name in CONSTANTS},
    asarray=_asarray,
    asnumpy=_asnumpy,
    ndarray=Array,
)
sparse = SimpleNamespace(csr_matrix=csr_matrix)
