"""Asks one engine all views, and the queries of all rules, over a tree of datasets, and notes what each takes:
scale.py ENGINE TREE VIEWS.sql OUT --rules iotrace-bpf

A line of JSON for each question: seconds, those of all cores together, the most memory, bytes read, and the answer: its
rows, and of each column the sum (of texts that of their lengths). By these the answers of two engines are compared:
scale.py compare ONE TWO"""

import argparse
import decimal
import itertools
import json
import math
import os
import re
import subprocess
import sys
import threading
import time

TEXTS = ("VARCHAR", "string", "ENUM")
WHOLE = r"BIGINT|HUGEINT|INTEGER|SMALLINT|TINYINT|(small|tiny|big)?int"
NUMBERS = re.compile(WHOLE + r"|DOUBLE|FLOAT|double|float|(DECIMAL|decimal)\(.*\)")


def process(pid, name):
    """Figures of a process by name, of a file in /proc."""
    return {k: int(v) for k, v in re.findall(r"(\w+):\s+(\d+)", open(f"/proc/{pid}/{name}").read())}


def cpu(pid):
    """The time of a process on CPUs so far, in seconds: fields 14 and 15 of proc_pid_stat(5), in hundredths."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Measured:
    """What a question takes, of the process that works on it."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        # From now on the most memory is that of this question.
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")
        self.read = process(self.pid, "io")["rchar"]
        self.worked = cpu(self.pid)
        self.begun = time.monotonic()
        return self

    def __exit__(self, *_):
        self.figures = {
            "seconds": round(time.monotonic() - self.begun, 3),
            "cpu": round(cpu(self.pid) - self.worked, 2),
            "memory": process(self.pid, "status")["VmHWM"] << 10,
            "read": process(self.pid, "io")["rchar"] - self.read,
        }


def sums(columns, quote):
    """What is asked of an answer: how many rows, and the sum of each column."""
    yield "count(*)"
    for name, kind in columns:
        quoted = quote + name + quote
        if NUMBERS.fullmatch(kind):
            yield f"sum(CAST({quoted} AS DOUBLE))"
        elif kind.startswith(TEXTS):
            yield f"sum(length({quoted}))"


class Duck:
    # What names of columns stand in.
    quote = '"'

    def __init__(self, options):
        import duckdb

        self.db = duckdb.connect()
        self.db.execute(f"SET memory_limit = '{options.memory}'")
        self.db.execute(f"SET temp_directory = '{options.temp}'")
        self.db.execute(f"SET max_temp_directory_size = '{options.spill}'")
        self.db.execute("SET enable_progress_bar = false")
        self.db.execute(f"SET VARIABLE iotrace_dir = '{options.tree}'")
        self.pid = os.getpid()

    def open(self, views):
        self.db.execute(open(views).read())
        found = self.db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        return [name for (name,) in found]

    def columns(self, query):
        return [(row[0], row[1]) for row in self.db.execute(f"DESCRIBE {query}").fetchall()]

    def ask(self, query):
        return self.db.execute(query).fetchone()

    def stop(self):
        self.db.interrupt()


class Spark:
    quote = "`"

    def __init__(self, options):
        from pyspark.sql import SparkSession

        wanted = {
            "spark.driver.memory": options.memory.lower().removesuffix("b"),
            "spark.local.dir": options.temp,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Of two cores the compilers of Java would take one for most of the time.
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "8",
        }
        builder = SparkSession.builder.master("local[*]")
        for key, value in wanted.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.spark.conf.set("iotrace.dir", options.tree)
        self.pid = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())

    def open(self, views):
        for statement in open(views).read().split(";\n"):
            if statement.strip():
                self.spark.sql(statement)
        return [t.name for t in self.spark.catalog.listTables() if not t.name.startswith("parts_")]

    def columns(self, query):
        return [(field.name, field.dataType.simpleString()) for field in self.spark.sql(query).schema]

    def ask(self, query):
        return tuple(self.spark.sql(query).collect()[0])

    def stop(self):
        self.spark.sparkContext.cancelAllJobs()


def plain(value):
    return float(value) if isinstance(value, (int, decimal.Decimal)) else value


def answer(engine, query, limit):
    """The answer to a question, which is given up after so many seconds."""
    timer = threading.Timer(limit, engine.stop)
    with Measured(engine.pid) as measured:
        timer.start()
        try:
            columns = engine.columns(query)
            row = engine.ask(f"SELECT {', '.join(sums(columns, engine.quote))} FROM ({query}) AS answer")
            names = [name for name, kind in columns if NUMBERS.fullmatch(kind) or kind.startswith(TEXTS)]
            found = {"rows": row[0], "sums": {n: plain(v) for n, v in zip(names, row[1:])}}
        except Exception as error:  # Any: an engine that is out of memory is one of the results.
            # Of the message only what it is about.
            lines = str(error).strip().splitlines() or [type(error).__name__]
            found = {"error": "time" if timer.finished.is_set() else lines[0][:200]}
        timer.cancel()
    return {**measured.figures, **found}


def queries(program):
    """The query of each rule, as the program shows it."""

    def shown(*args):
        return subprocess.run([program, "rules", *args], check=True, capture_output=True, text=True).stdout

    # A line for each below those of the columns, then an empty one.
    for line in itertools.takewhile(str.strip, shown("list").splitlines()[1:]):
        rule = line.split()[0]
        yield f"rule {rule}", re.search(r"^ +SQL +(.*)$", shown("show", rule), re.M)[1]


def questions(views, rules, only, hosts):
    """Views, the queries of rules, and one view where less is to be read."""
    for what, query in [*((view, f"SELECT * FROM {view}") for view in sorted(views)), *rules]:
        if only is None or what.removeprefix("rule ") in only:
            yield what, query
    calls = "SELECT layer, op, count(*) AS calls, sum(bytes) AS bytes FROM spans {} GROUP BY layer, op"
    ten = "start_ns BETWEEN 600000000000 AND 1200000000000"
    yield "calls by function", calls.format("")
    yield "of a node", calls.format(f"WHERE host = '{hosts[len(hosts) // 2]}'")
    yield "of ten minutes", calls.format(f"WHERE {ten}")
    yield "of a node, ten minutes", calls.format(f"WHERE host = '{hosts[len(hosts) // 2]}' AND {ten}")


def run(options):
    with open(options.out, "w") as out:

        def note(what, figures):
            print(json.dumps({"what": what, **figures}), file=out, flush=True)

        engine = (Duck if options.engine == "duckdb" else Spark)(options)
        with Measured(engine.pid) as opening:
            views = engine.open(options.views)
        note("open", opening.figures)
        nodes = [d for d, _, _ in os.walk(options.tree) if "/start=" not in d]
        hosts = sorted(re.findall(r"node=([^/\n]+)", "\n".join(nodes)))
        rules = queries(options.rules) if options.rules else ()
        for what, query in questions(views, rules, options.only, hosts):
            note(what, answer(engine, query, options.limit))


def same(one, two):
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-6)
    return one == two


def compare(one, two):
    """What both have answered, and answered differently."""
    ours, theirs = ({row["what"]: row for row in map(json.loads, open(path))} for path in (one, two))
    wrong, compared = [], 0
    for what in ours:
        a, b = ours[what], theirs.get(what, {})
        if "rows" not in a or "rows" not in b:
            continue
        compared += 1
        if a["rows"] != b["rows"]:
            wrong.append(f"{what}: {a['rows']} rows, {b['rows']}")
        for name in sorted(a["sums"].keys() & b["sums"].keys()):
            if not same(a["sums"][name], b["sums"][name]):
                wrong.append(f"{what}: {name} {a['sums'][name]}, {b['sums'][name]}")
    print(f"{compared} answers compared, {len(wrong)} figures differ")
    print("\n".join(wrong))
    sys.exit(1 if wrong or not compared else 0)


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare(*sys.argv[2:4])
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["duckdb", "spark"])
    parser.add_argument("tree")
    parser.add_argument("views")
    parser.add_argument("out")
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--spill", default="8GB")
    parser.add_argument("--temp", default="/tmp")
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--rules", metavar="PROGRAM")
    parser.add_argument("--only", type=lambda names: names.split(","))
    run(parser.parse_args())
