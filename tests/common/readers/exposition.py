"""Samples of pages of metrics, as the parsers of prometheus_client read them: JSON for each page on stdin."""

import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

READERS = {
    "openmetrics": openmetrics.text_string_to_metric_families,
    "prometheus": parser.text_string_to_metric_families,
}


def samples(page):
    for family in READERS[page["format"]](page["text"]):
        for sample in family.samples:
            # A number that is none is no JSON.
            yield [sample.name, sorted(sample.labels.items()), repr(float(sample.value))]


json.dump([sorted(samples(page)) for page in json.load(sys.stdin)], sys.stdout)
