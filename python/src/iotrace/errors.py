"""What can go wrong, and what to be warned of."""


class IotraceError(Exception):
    """Any error of this package about a dataset or the program."""


class NotADataset(IotraceError):
    """The path is no dataset and no directory with datasets."""


class Unreadable(IotraceError):
    """A table of the dataset is damaged, or lacks what the views need."""


class ProgramNotFound(IotraceError):
    """`iotrace-bpf` is neither given, nor in the environment, nor in `PATH`."""


class ProgramFailed(IotraceError):
    """`iotrace-bpf` ended with an error, or its answer is no report."""


class MissingExtra(IotraceError):
    """A package of an optional extra (`iotrace[plot]`, `iotrace[polars]`) is not installed."""


class LossWarning(UserWarning):
    """Calls are missing in the dataset: sums are too small."""


class SumsWarning(UserWarning):
    """The trace has sums (`--aggregate`), and few single calls or none."""
