//! Tables of what was measured, in Markdown.

use super::ENGINES;
use super::taken::{Answer, Size};

/// All tables.
pub fn tables(sizes: &[Size]) -> String {
    let mut text = made(sizes);
    text.push_str(&program(sizes));
    for engine in ENGINES {
        text.push_str(&engine_of(engine, sizes));
    }
    text
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn table(title: &str, heads: &[String], rows: &[Vec<String>]) -> String {
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("\n{title}\n\n{}|{}\n{rows}", line(heads), "---|".repeat(heads.len()))
}

fn made(sizes: &[Size]) -> String {
    let heads = ["nodes", "calls", "files", "GB"].map(str::to_owned);
    let row = |size: &Size| {
        let gb = format!("{:.2}", size.bytes as f64 / 1e9);
        vec![size.nodes.to_string(), size.spans.to_string(), size.files.to_string(), gb]
    };
    table("Datasets", &heads, &sizes.iter().map(row).collect::<Vec<_>>())
}

/// Seconds of CPU, which other work on the machine does not change, memory and bytes read, or why there is no answer.
fn cell(answer: Option<&Answer>) -> String {
    match answer {
        None => String::new(),
        Some(Answer { error: Some(why), .. }) if why == "time" => "time".to_owned(),
        Some(Answer { error: Some(why), .. }) if why.contains("emory") => "memory".to_owned(),
        Some(Answer { error: Some(_), .. }) => "failed".to_owned(),
        Some(Answer { cpu, memory, read, .. }) => {
            format!("{cpu:.1} s, {} MiB, {:.0} MB", memory >> 20, *read as f64 / 1e6)
        }
    }
}

/// By how much the time grows from each size to the next.
fn growth(answers: &[Option<&Answer>]) -> String {
    let cpu = |answer: Option<&Answer>| answer.filter(|a| a.error.is_none()).map(|a| a.cpu.max(0.01));
    let ratio = |pair: &[Option<&Answer>]| Some(format!("{:.1}", cpu(pair[1])? / cpu(pair[0])?));
    answers.windows(2).map(|pair| ratio(pair).unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>().join(", ")
}

fn questions(title: &str, engine: &str, sizes: &[Size]) -> String {
    let mut asked: Vec<&str> = Vec::new();
    for (_, what, _) in sizes.iter().flat_map(|size| &size.answers).filter(|(of, _, _)| *of == engine) {
        if !asked.contains(&what.as_str()) {
            asked.push(what);
        }
    }
    let mut heads = vec![String::new()];
    heads.extend(sizes.iter().map(|size| format!("{} nodes", size.nodes)));
    heads.push("growth of the time".to_owned());
    let row = |what: &&str| {
        let answers: Vec<_> = sizes.iter().map(|size| size.answer(engine, what)).collect();
        let mut row = vec![(*what).to_owned()];
        row.extend(answers.iter().map(|answer| cell(*answer)));
        row.push(growth(&answers));
        row
    };
    table(title, &heads, &asked.iter().map(row).collect::<Vec<_>>())
}

fn program(sizes: &[Size]) -> String {
    questions("Commands: time on CPUs, most memory, bytes read", "iotrace-bpf", sizes)
}

fn engine_of(engine: &str, sizes: &[Size]) -> String {
    questions(&format!("{engine}: time on CPUs, most memory, bytes read"), engine, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(nodes: u32, cpu: f64, error: Option<&str>) -> Size {
        let error = error.map(str::to_owned);
        let answer = Answer { cpu, memory: 5 << 20, read: 7_000_000, error, ..Answer::default() };
        let answers = vec![("duckdb", "v_ops".to_owned(), answer)];
        Size { nodes, spans: 10, files: 2, bytes: 1_000_000_000, answers, wrong: Vec::new() }
    }

    #[test]
    fn growth_is_from_one_size_to_the_next() {
        let text = tables(&[size(1, 0.5, None), size(10, 4.0, None), size(100, 9.0, Some("time"))]);
        assert!(text.contains("| v_ops | 0.5 s, 5 MiB, 7 MB | 4.0 s, 5 MiB, 7 MB | time | 8.0, - |"), "{text}");
        assert!(text.contains("| 10 | 10 | 2 | 1.00 |"), "{text}");
    }
}
