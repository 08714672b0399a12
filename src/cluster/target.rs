//! Where a tracer serves its metrics.

use ureq::http::Uri;
use ureq::http::uri::PathAndQuery;

const FORM: &str = "expected HOST:PORT or http://HOST:PORT/metrics, as --metrics of the tracer has it";

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host and port.
    pub name: String,
    pub url: String,
}

/// An address as the command line has it.
///
/// # Errors
/// When it is none, with the form that it has.
pub fn parse(text: &str) -> Result<Target, String> {
    let text = text.trim();
    if text.starts_with("https://") {
        return Err("the tracer serves http, not https".to_owned());
    }
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = whole.parse().map_err(|_| FORM.to_owned())?;
    let authority = uri.authority().filter(|a| !a.host().is_empty() && a.port_u16().is_some_and(|port| port > 0));
    let name = authority.filter(|a| !a.as_str().contains('@')).ok_or(FORM)?.to_string();
    if uri.scheme_str() != Some("http") {
        return Err(FORM.to_owned());
    }
    let path = uri.path_and_query().map(PathAndQuery::as_str).filter(|path| *path != "/").unwrap_or("/metrics");
    Ok(Target { url: format!("http://{name}{path}"), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_short_and_whole() {
        let of = |text: &str| parse(text).map(|t| (t.name, t.url));
        let expected = Ok(("node1:9464".to_owned(), "http://node1:9464/metrics".to_owned()));
        for text in ["node1:9464", "http://node1:9464", "http://node1:9464/", "http://node1:9464/metrics"] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(of("[::1]:80/x?y=1"), Ok(("[::1]:80".to_owned(), "http://[::1]:80/x?y=1".to_owned())));
        for wrong in ["", "node1", "node1:0", "node1:x", ":9464", "http://node1", "ftp://a:1", "a b:1", "u:p@a:1"] {
            assert_eq!(of(wrong), Err(FORM.to_owned()), "{wrong}");
        }
        assert!(of("https://node1:9464").is_err_and(|why| why.contains("not https")));
    }
}
