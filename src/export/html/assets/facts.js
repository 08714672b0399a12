// What does not depend on the selection: the run, its findings, what was covered and what was lost.

function rows(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", {}, known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
}

function drawRun(host) {
  const { header, tracing, complete, losses, warnings, tracing_warning: warning } = trace.report;
  host.append(rows([
    ["command", header.command], ["host", header.host], ["start", header.start],
    ["duration", format.ns(header.duration_ns) + (header.end_recorded ? "" : " (to the last event: the end was not recorded)")],
    ["processes", header.processes + (header.ranks ? ", " + header.ranks + " ranks" : "")],
    ["files", header.files],
    ["recorded", header.aggregate ? "sums of calls (--aggregate): single calls and their callers are not known" : "every call"],
    ["tracing took", tracing ? format.percent(tracing.share) + " of the run" : "not recorded"],
    ["lost", complete ? "nothing" : losses.map((l) => (l.layer || "any layer") + ": " + format.calls(l.count) + " (" + l.place + ")").join("; ")],
  ]));
  const more = [...warnings, ...(warning ? [warning] : []), ...trace.report.opaque.map((o) => o.program + ": calls of libraries are not seen: " + o.reason)];
  if (!complete) more.push("Figures of layers with losses are too low.");
  host.append(...more.map((text) => el("p", { class: "warning" }, text)));
  for (const node of trace.report.nodes.length > 1 ? trace.report.nodes : []) {
    host.append(el("p", { class: "note" }, node.host + ": clock " + node.clock.how + ", offset " + node.clock.offset_ns + " ns"));
  }
}

function drawFindings(host) {
  const { findings, not_evaluated: not, unexplained_s: unexplained, calls_s: calls } = trace.report;
  if (!findings.length) host.append(el("p", {}, "The rules found nothing."));
  for (const finding of findings) host.append(drawFinding(finding));
  host.append(el("p", { class: "note" }, "Calls on the critical lane took " + format.ns(calls * 1e9) + "; no finding claims " + format.ns(unexplained * 1e9) + " of it."));
  if (not.length) {
    host.append(el("details", {}, el("summary", {}, not.length + " rules could not be applied"),
      el("ul", {}, not.map((one) => el("li", {}, one.rule + ": " + one.why)))));
  }
}

function drawFinding(finding) {
  const s = (seconds) => format.ns(seconds * 1e9);
  const parts = [el("h3", {}, finding.severity + ": " + finding.title)];
  if (finding.seconds !== null) {
    const gain = finding.gain_high_s === null ? "" : "; removing the cause would save " + s(finding.gain_low_s) + " to " + s(finding.gain_high_s);
    parts.push(el("p", {}, "costs " + s(finding.seconds) + (finding.share === null ? "" : ", " + format.percent(finding.share) + " of the run") + gain));
  }
  parts.push(el("p", {}, finding.advice));
  const { files, ranks, spans } = finding.evidence;
  const evidence = [];
  for (const path of files) {
    const at = trace.files.findIndex((file) => file.name === visible(path) || file.name === path || file.name.endsWith(": " + path));
    evidence.push(at < 0 ? el("li", {}, path) : el("li", {}, el("button", { type: "button", onclick: () => select({ file: at }) }, path)));
  }
  for (const rank of ranks) {
    const at = trace.ranks.indexOf("rank " + rank);
    const name = "rank " + rank;
    evidence.push(at < 0 ? el("li", {}, name) : el("li", {}, el("button", { type: "button", onclick: () => select({ r0: at, r1: at }) }, name)));
  }
  if (spans.length) evidence.push(el("li", {}, "calls (spans.span_id): " + spans.slice(0, 8).join(", ")));
  parts.push(el("details", {}, el("summary", {}, "Evidence of rule " + finding.rule), el("ul", {}, evidence), el("pre", {}, finding.sql)));
  return el("article", { class: "finding " + finding.severity }, parts);
}

function drawCoverage(host) {
  const list = (counts) => Object.entries(counts).map(([name, n]) => name + " (" + n + ")").join("; ");
  const table = new Table(host, "Probes by layer", [
    { head: "layer", value: (c) => c.layer },
    { head: "attached", value: (c) => c.attached, show: format.calls },
    { head: "probes", value: (c) => c.probes, show: format.calls },
    { head: "how", value: (c) => list(c.tiers) },
    { head: "what is missing", value: (c) => [c.not_covered, c.paused, list(c.refused), Object.keys(c.demoted || {}).length
      ? "estimated: " + Object.keys(c.demoted).join(", ") : null].filter(Boolean).join("; ") },
  ]);
  table.set(trace.report.coverage);
}
