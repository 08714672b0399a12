//! One request for metrics.

use std::time::Duration;

use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Error};

use crate::cluster::names::Names;
use crate::cluster::totals::{self, Totals};

/// How long an answer may take, from the look-up of the name to its last byte.
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes of an answer at most. That of a tracer has a tenth of a megabyte or some.
const LARGEST: u64 = 64 << 20;

/// Asks servers; no proxy of the environment is between.
pub fn agent() -> Agent {
    let config = Agent::config_builder();
    let config = config.timeout_global(Some(LIMIT)).proxy(None).max_redirects(0).max_idle_connections(0).build();
    Agent::with_parts(config, DefaultConnector::default(), Names)
}

/// The totals that a tracer serves, or why there are none.
pub fn ask(agent: &Agent, url: &str) -> Result<Totals, String> {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let text = agent
        .get(url)
        .header("Accept", accept)
        .call()
        .and_then(|mut answer| answer.body_mut().with_config().limit(LARGEST).read_to_string())
        .map_err(|e| reason(&e))?;
    totals::read(&text)
}

fn reason(error: &Error) -> String {
    match error {
        Error::Timeout(_) => format!("no answer within {} s", LIMIT.as_secs()),
        Error::StatusCode(code) => format!("the answer is HTTP status {code}"),
        Error::HostNotFound => "no such host".to_owned(),
        Error::BodyExceedsLimit(_) => "the answer is too large for one of a tracer".to_owned(),
        Error::Io(e) => {
            let text = e.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}
