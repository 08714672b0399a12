"""Reads the datasets of `iotrace-bpf` into pandas or Polars.

import iotrace

run = iotrace.open("run.iotrace")
run.findings()                            # what is slow and why
run.files()                               # each file: calls, bytes, times
run.calls(layer="syscall", slower_than=0.001)
run.plot_heatmap(by="rank")
"""

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from .dataset import Dataset
from .errors import (
    IotraceError,
    LossWarning,
    MissingExtra,
    NotADataset,
    ProgramFailed,
    ProgramNotFound,
    SumsWarning,
    Unreadable,
)

__all__ = [
    "Dataset",
    "IotraceError",
    "LossWarning",
    "MissingExtra",
    "NotADataset",
    "ProgramFailed",
    "ProgramNotFound",
    "SumsWarning",
    "Unreadable",
    "open",
]


if TYPE_CHECKING:
    import pandas
    import polars as pl


@overload
def open(
    path: str | os.PathLike[str], *, polars: Literal[False] = False, program: str | os.PathLike[str] | None = None
) -> "Dataset[pandas.DataFrame]": ...
@overload
def open(
    path: str | os.PathLike[str], *, polars: Literal[True], program: str | os.PathLike[str] | None = None
) -> "Dataset[pl.DataFrame]": ...
def open(
    path: str | os.PathLike[str], *, polars: bool = False, program: str | os.PathLike[str] | None = None
) -> Dataset[Any]:
    """Opens a dataset, or a directory with those of several nodes or periods of one run.

    Args:
        path: A directory that `iotrace-bpf --output` wrote, or one that holds several, however deep.
        polars: Return data frames of Polars (needs `iotrace[polars]`) in place of pandas.
        program: `iotrace-bpf`, which computes findings; without it `$IOTRACE_BPF`, else the one in `PATH`.

    Raises:
        NotADataset: When there is no dataset.
        Unreadable: When its tables are damaged.

    Warns:
        LossWarning: When something was lost, or the trace has no end.
    """
    return Dataset(path, polars=polars, program=program)
