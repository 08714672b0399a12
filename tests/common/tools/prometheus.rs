//! The real Prometheus: scrapes an address, and is asked over its own HTTP API.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Labels, without those that Prometheus adds, and a value.
pub type Samples = BTreeMap<BTreeMap<String, String>, f64>;

/// Head and body of what a server answers to a GET.
pub fn get(address: SocketAddr, path: &str, accept: &str) -> std::io::Result<(String, String)> {
    let mut server = TcpStream::connect(address)?;
    // Of version 1.0, so that no answer is in chunks.
    write!(server, "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.to_owned(), body.to_owned()))
}

/// One that runs as long as this lives.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Scrapes `target`, and evaluates the rules of a file, every second.
    pub fn start(work: &Path, target: SocketAddr, rules: &Path) -> Self {
        let config = work.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\n\
             scrape_configs:\n  - job_name: iotrace\n    static_configs: [{{targets: ['{target}']}}]\n",
            rules.display()
        );
        fs::write(&config, text).unwrap();
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let data = work.join("prometheus");
        let log = fs::File::create(work.join("prometheus.log")).unwrap();
        let child = Command::new("prometheus")
            .args([format!("--config.file={}", config.display()), format!("--storage.tsdb.path={}", data.display())])
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, address }
    }

    fn ask(&self, path: &str) -> Option<Value> {
        let (head, body) = get(self.address, path, "application/json").ok()?;
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        // It may not be ready yet.
        if head.contains(" 503 ") {
            return None;
        }
        assert_eq!(answer["status"], "success", "{path}: {head}\n{body}");
        Some(answer["data"].clone())
    }

    /// What a query gives now: nothing as long as there is nothing.
    pub fn samples(&self, query: &str) -> Samples {
        let escaped = query.bytes().map(|b| format!("%{b:02X}")).collect::<Vec<_>>().concat();
        let answer = self.ask(&format!("/api/v1/query?query={escaped}")).unwrap_or_default();
        let sample = |s: &Value| {
            let labels: BTreeMap<String, String> = serde_json::from_value(s["metric"].clone()).unwrap();
            let labels = labels.into_iter().filter(|(k, _)| !["__name__", "instance", "job"].contains(&k.as_str()));
            (labels.collect(), s["value"][1].as_str().unwrap().parse().unwrap())
        };
        answer["result"].as_array().into_iter().flatten().map(sample).collect()
    }

    /// The value of a query that gives one.
    pub fn value(&self, query: &str) -> Option<f64> {
        let samples = self.samples(query);
        assert!(samples.len() <= 1, "{query}: {samples:?}");
        samples.into_values().next()
    }

    /// The rules that it has evaluated: name, health (`ok`, `err`, `unknown`) and error.
    pub fn rules(&self) -> Vec<[String; 3]> {
        let answer = self.ask("/api/v1/rules").unwrap_or_default();
        let groups = answer["groups"].as_array().into_iter().flatten();
        let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
        rules
            .map(|rule| ["name", "health", "lastError"].map(|key| rule[key].as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    /// Type, unit and help of a metric, as it has understood them.
    pub fn metadata(&self, metric: &str) -> Option<[String; 3]> {
        let all = self.ask(&format!("/api/v1/metadata?metric={metric}"))?;
        let one = all[metric].get(0)?;
        Some(["type", "unit", "help"].map(|key| one[key].as_str().unwrap_or_default().to_owned()))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
