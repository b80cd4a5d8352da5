"""Read TensorBoard's event files without TensorBoard: the framing of records and the relevant fields of a message.

A record is its length (8 bytes, little endian), a checksum of that (4), the message, a checksum of it (4)
(tensorflow/tensorflow, tensorflow/core/lib/io/record_writer.h). The message is an Event (tensorflow/core/util/
event.proto: wall_time = 1, step = 2, summary = 5) whose Summary (framework/summary.proto: value = 1) has values with
tag = 1 and simple_value = 2, or a tensor = 8 (framework/tensor.proto: tensor_content = 4, float_val = 5). Checksums are
not checked; a truncated last record ends the file, as in TensorBoard.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.events import Event, Start, Step
from chartgen.metrics.read.readers.pairs import translate_values

_LARGEST = 1 << 26
_LARGEST_STEP = (1 << 62) - 1
_HEADER = struct.Struct("<QI")


def read_event_file(stream: IO[bytes], place: str) -> Iterator[Event]:
    """Yield an event file's steps: adjacent values of a step form one. Raise ChartgenError for another file."""
    number, when, found = -1, 0.0, dict[str, float]()
    for message in _records(stream, place):
        try:
            time, step, pairs = _event(message)
        except (struct.error, IndexError) as error:
            raise ChartgenError(Problem("has a record that is not a TensorBoard event", place)) from error
        if not when:
            when = time
            yield Start(time)
        values = translate_values(pairs)
        if not values:
            continue
        if step != number and found:
            yield Step(number, when, found)
            found = {}
        number, when = step, time
        found.update(values)
    if found:
        yield Step(number, when, found)


def _records(stream: IO[bytes], place: str) -> Iterator[bytes]:
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        size, _ = _HEADER.unpack(header)
        if size > _LARGEST:
            raise ChartgenError(Problem("is not a TensorBoard event file, despite its name", place))
        message = stream.read(size)
        if len(message) < size:
            return
        stream.read(4)
        yield message


def _event(message: bytes) -> tuple[float, int, list[tuple[str, float]]]:
    time, step, pairs = 0.0, 0, list[tuple[str, float]]()
    for field, value in _fields(message):
        if field == 1 and isinstance(value, bytes):
            (time,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value & _LARGEST_STEP  # drop the sign bit of a negative number, which is not a valid step
        elif field == 5 and isinstance(value, bytes):
            texts = (text for inner, text in _fields(value) if inner == 1 and isinstance(text, bytes))
            pairs += [pair for text in texts for pair in _value(text)]
    return time, step, pairs


def _value(message: bytes) -> Iterator[tuple[str, float]]:
    tag, number = "", None
    for field, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode(errors="replace")
        elif field == 2:
            (number,) = struct.unpack("<f", value)
        elif field == 8:
            number = _scalar(value)
    if number is not None:
        yield tag, number


def _scalar(message: bytes) -> float | None:
    for field, value in _fields(message):
        if field in (4, 5) and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
    return None


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and value of each field (protobuf.dev, Encoding): varints as int, all others as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        else:
            size = 8 if kind == 1 else 4
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:  # ten bytes of seven bits contain the 64 bits of the longest varint
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise IndexError
