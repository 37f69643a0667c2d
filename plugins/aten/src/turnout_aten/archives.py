"""Zip archives whose entries are stored as they are: what `turnout.save` writes, any zip tool reads, and `turnout.load` believes.

The archive ends with a directory of its entries. `Archive` reads that once and checks it against the size of the file, so that
nothing is allocated or read which the file does not hold: every byte belongs to one entry at most. Zip64 fields stand where a
number needs more than 32 (or, for the number of entries, 16) bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import IO, Any
from zlib import crc32

from turnout.config.tuples import NamedTuple
from turnout_aten.files import Damaged, exactly, need

# One row for each kind of header: its mark, and its numbers.
_LOCAL = Struct("<4s5H3L2H")  # needed, flags, method, time, date; crc, size, size; lengths of name and extra
_ROW = Struct("<4s6H3L5H2L")  # made by, then as above; lengths of name, extra and comment, disk, kind; kind, offset
_END = Struct("<4s4H2LH")  # disk, disk, entries, entries; size and offset of the directory; length of a comment
_END64 = Struct("<4sQ2H2L4Q")  # size of this, made by, needed; disks; entries, entries, size, offset
_END64_AT = Struct("<4sLQL")  # disk, offset of the former, disks
_LOCAL_MARK, _ROW_MARK, _END_MARK = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_END64_MARK, _END64_AT_MARK, _SUM_MARK = b"PK\6\6", b"PK\6\7", b"PK\7\x08"

BIG, MANY = 0xFFFFFFFF, 0xFFFF  # they stand for a number, and a number of entries, that is in a zip64 field
LIMIT, LIMIT_OF_ENTRIES = BIG, MANY  # numbers from here on are
_SUM_FOLLOWS, _UTF8 = 0x8, 0x800  # the flags that an entry may have
_VERSION, _VERSION64 = 20, 45
_DATE = 0x21  # 1980-01-01: the same object gives the same bytes
_CHUNK = 1 << 20


# ---- writing


def write(file: IO[bytes], entries: Iterable[tuple[str, Any]]) -> None:
    """Write an archive from front to back; each entry is a name and a buffer of bytes."""
    rows: list[bytes] = []
    offset = 0
    for name, data in entries:
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")  # what is empty has no bytes to cast
        row, length = _write_entry(file, name.encode("utf-8"), view, offset)
        rows.append(row)
        offset += length
    directory = b"".join(rows)
    put(file, directory)
    where = offset + len(directory)
    count, size = len(rows), len(directory)
    if count >= LIMIT_OF_ENTRIES or where >= LIMIT:
        put(file, _END64.pack(_END64_MARK, 44, _VERSION64, _VERSION64, 0, 0, count, count, size, offset))
        put(file, _END64_AT.pack(_END64_AT_MARK, 0, where, 1))
        count, size, offset = MANY, BIG, BIG
    put(file, _END.pack(_END_MARK, 0, 0, count, count, size, offset, 0))


def _write_entry(file: IO[bytes], name: bytes, data: memoryview, offset: int) -> tuple[bytes, int]:
    """Write one entry. Returns its row in the directory, and how many bytes were written."""
    size = len(data)
    big = size >= LIMIT
    shown, version = (BIG, _VERSION64) if big else (size, _VERSION)
    extra = Struct("<2H2Q").pack(1, 16, size, size) if big else b""
    # The sum is that of the bytes that were written, even where another thread writes into the memory meanwhile: it comes after.
    flags, total = _SUM_FOLLOWS | _UTF8, 0
    sizes = (0, shown, shown, len(name), len(extra))
    put(file, _LOCAL.pack(_LOCAL_MARK, version, flags, 0, 0, _DATE, *sizes) + name + extra)
    for start in range(0, size, _CHUNK):
        chunk = bytes(data[start : start + _CHUNK])
        total = crc32(chunk, total)
        put(file, chunk)
    put(file, Struct("<4sL2Q" if big else "<4sL2L").pack(_SUM_MARK, total, size, size))
    length = _LOCAL.size + len(name) + len(extra) + size + (24 if big else 16)
    numbers = [n for n in (size, size, offset) if n >= LIMIT]
    extra = Struct(f"<2H{len(numbers)}Q").pack(1, 8 * len(numbers), *numbers) if numbers else b""
    version = _VERSION64 if numbers else _VERSION
    head = (version, version, flags, 0, 0, _DATE, total, shown, shown, len(name), len(extra), 0, 0, 0, 0)
    return _ROW.pack(_ROW_MARK, *head, BIG if offset >= LIMIT else offset) + name + extra, length


def put(file: IO[bytes], data: bytes) -> None:
    """Write all of the bytes: a file without a buffer may take fewer at once."""
    while True:
        taken: Any = file.write(data)
        if type(taken) is not int or not 0 < taken < len(data):
            return
        data = data[taken:]


# ---- reading


class Entry(NamedTuple):
    """Where an entry begins, where the next one does, and what the directory says of it."""

    start: int
    end: int
    size: int
    crc: int


class Archive:
    """The entries of an archive by name. Raises Damaged for one that is not as `write` makes it, or is no archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        file.seek(0, 2)
        self.entries = self._directory(file.tell())

    def _at(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return exactly(self._file, size)

    def _directory(self, length: int) -> dict[str, Entry]:
        tail = self._at(max(0, length - _END.size), min(length, _END.size))
        need(len(tail) == _END.size and tail.startswith(_END_MARK), "it does not end as an archive ends")
        *_, count, size, offset, comment = _END.unpack(tail)
        end = length - _END.size
        before = end - _END64_AT.size - _END64.size
        if before >= 0 and offset + size != end:  # not all before the end is entries and directory
            record = self._at(before, end - before)
            if record.startswith(_END64_MARK) and record[_END64.size :].startswith(_END64_AT_MARK):
                *_, wide_count, wide_size, wide_offset = _END64.unpack_from(record)
                both = ((count, wide_count, MANY), (size, wide_size, BIG), (offset, wide_offset, BIG))
                need(all(short in (wide, most) for short, wide, most in both), "its two ends say different things")
                count, size, offset, end = wide_count, wide_size, wide_offset, before
        need(comment == 0 and size <= end, "its directory is cut off")
        # An archive may stand behind other bytes: what it calls 0 is where it begins.
        zero = end - size - offset
        need(zero >= 0, "its directory is not where its end says")
        rows = _rows(self._at(end - size, size), count)
        starts = sorted([start for _, start, _, _ in rows])
        need(len(set(starts)) == len(rows), "two of its entries are in one place")
        after = dict(zip(starts, [*starts[1:], offset], strict=bool(starts)))
        entries: dict[str, Entry] = {}
        for name, start, held, crc in rows:
            need(name not in entries, f"it holds {name!r} twice")
            need(start + _LOCAL.size + held <= after[start], f"{name!r} reaches beyond its place in the file")
            entries[name] = Entry(zero + start, zero + after[start], held, crc)
        return entries

    def read(self, name: str) -> bytes:
        """All bytes of an entry."""
        entry = self.entries[name]
        head = self._at(entry.start, _LOCAL.size)
        mark, _, flags, method, _, _, _, _, _, named, extra = _LOCAL.unpack(head)
        at = _LOCAL.size + named + extra
        fits = mark == _LOCAL_MARK and method == 0 and not flags & ~(_SUM_FOLLOWS | _UTF8)
        need(fits and entry.start + at + entry.size <= entry.end, f"the header of {name} is wrong")
        need(exactly(self._file, named) == name.encode("utf-8"), f"the header of {name} has another name")
        data = self._at(entry.start + at, entry.size)
        need(crc32(data) == entry.crc, f"the bytes of {name} are not those that were written")
        return data


def _rows(directory: bytes, count: int) -> list[tuple[str, int, int, int]]:
    """What the directory says: name, offset, size and sum of each entry."""
    rows = []
    place = 0
    while place < len(directory):
        need(len(directory) - place >= _ROW.size, "its directory is cut off")
        found = _ROW.unpack_from(directory, place)
        mark, flags, method, crc, packed, size = found[0], found[3], found[4], *found[7:10]
        names, extras, comments, offset = *found[10:13], found[16]
        need(mark == _ROW_MARK and found[13] == 0, "its directory is wrong")
        at = place + _ROW.size
        place = at + names + extras + comments
        need(place <= len(directory), "its directory is cut off")
        try:
            name = directory[at : at + names].decode("utf-8")
        except UnicodeDecodeError:
            raise Damaged("the name of an entry is not UTF-8") from None
        need(not flags & 1, f"{name!r} is encrypted")
        need(method == 0, f"{name!r} is compressed; save stores the bytes as they are")
        need(not flags & ~(_SUM_FOLLOWS | _UTF8), f"{name!r} has unknown flags")
        extra = directory[at + names : at + names + extras]
        size, packed, offset = _wide(extra, [size, packed, offset], name)
        need(size == packed, f"{name!r} has two sizes, {size} and {packed}")
        rows.append((name, offset, size, crc))
    need(len(rows) == count, f"it has {len(rows)} entries, and its end says {count}")
    return rows


def _wide(extra: bytes, numbers: list[int], name: str) -> list[int]:
    """The numbers, from the zip64 field where they need one."""
    if BIG not in numbers:
        return numbers
    place = 0
    while place + 4 <= len(extra):
        kind, length = Struct("<2H").unpack_from(extra, place)
        if kind == 1:
            wide = numbers.count(BIG)
            need(length >= 8 * wide and place + 4 + length <= len(extra), f"the zip64 field of {name!r} is cut off")
            values = iter(Struct(f"<{wide}Q").unpack_from(extra, place + 4))
            return [next(values) if number == BIG else number for number in numbers]
        place += 4 + length
    raise Damaged(f"the zip64 field of {name!r} is missing")
