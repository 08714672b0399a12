"""Runs `iotrace-bpf report --json`, which computes the findings."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .errors import ProgramFailed, ProgramNotFound

#: Names the program where it is not in `PATH`.
VARIABLE = "IOTRACE_BPF"


def find(program: str | os.PathLike[str] | None) -> str:
    """Finds the program: the argument, else the variable `IOTRACE_BPF`, else `PATH`.

    Raises:
        ProgramNotFound: When there is none.
    """
    wanted = os.fspath(program) if program is not None else os.environ.get(VARIABLE) or "iotrace-bpf"
    found = shutil.which(wanted)
    if found is None:
        raise ProgramNotFound(
            f"no program {wanted!r}: findings are computed by iotrace-bpf; name it with program=..., "
            f"in the variable {VARIABLE}, or put it in PATH"
        )
    return found


def report(program: str, directory: Path) -> dict[str, Any]:
    """The report on a directory as the program gives it.

    Raises:
        ProgramFailed: When the program refuses the directory, with its reason.
    """
    command = [program, "report", "--json", os.fspath(directory)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as wrong:
        raise ProgramFailed(f"cannot execute {program}: {wrong}") from wrong
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise ProgramFailed(f"{program} report ended with {done.returncode}: {why}")
    try:
        answer = json.loads(done.stdout)
    except ValueError as wrong:
        raise ProgramFailed(f"{program} report gave no JSON: {wrong}") from wrong
    if not isinstance(answer, dict):
        raise ProgramFailed(f"{program} report gave {type(answer).__name__}, not a report")
    return answer


def reports(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The reports in an answer: one, or one for each run when the directory has several."""
    return [run["report"] for run in answer["runs"]] if "runs" in answer else [answer]


def finding_rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each finding, in the order of the reports."""
    plain = ("rule", "severity", "title", "seconds", "share", "gain_low_s", "gain_high_s", "advice", "sql")
    evidence = ("spans", "files", "functions", "ranks", "processes")
    try:
        return [
            {"run": run}
            | {name: finding.get(name) for name in plain}
            | {name: finding.get("evidence", {}).get(name, []) for name in evidence}
            for run, one in enumerate(reports(answer))
            for finding in one["findings"]
        ]
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ProgramFailed(f"the report of iotrace-bpf is of another version: {wrong!r}") from wrong
