//! The template with its styles, scripts and data.

use std::io::{self, Write};

use serde_json::Value;

use crate::base::text;

const INDEX: &str = include_str!("assets/index.html");
const STYLES: [&str; 2] = [include_str!("assets/uPlot.min.css"), include_str!("assets/style.css")];
const UPLOT_LICENSE: &str = include_str!("assets/uPlot.LICENSE");
/// In the order in which they need each other.
const SCRIPTS: [&str; 11] = [
    include_str!("assets/uPlot.iife.min.js"),
    include_str!("assets/format.js"),
    include_str!("assets/cube.js"),
    include_str!("assets/state.js"),
    include_str!("assets/table.js"),
    include_str!("assets/heatmap.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/accesses.js"),
    include_str!("assets/icicle.js"),
    include_str!("assets/facts.js"),
    include_str!("assets/app.js"),
];

/// Writes the page. Names in the data are of strangers: none of them can end the element that holds it.
pub fn write(title: &str, data: &Value, out: &mut dyn Write) -> io::Result<()> {
    for piece in INDEX.split("{{") {
        let (name, rest) = piece.split_once("}}").unwrap_or(("", piece));
        match name {
            "title" => out.write_all(markup(title).as_bytes())?,
            "style" => STYLES.iter().try_for_each(|style| out.write_all(style.as_bytes()))?,
            "script" => {
                writeln!(out, "/* uPlot:\n{UPLOT_LICENSE}*/")?;
                SCRIPTS.iter().try_for_each(|script| writeln!(out, "{script}"))?;
            }
            "data" => out.write_all(embedded(data).as_bytes())?,
            _ => {}
        }
        out.write_all(rest.as_bytes())?;
    }
    Ok(())
}

fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// JSON as the text of a `script` element: without `<` neither `</script` nor `<!--` is in it.
fn embedded(data: &Value) -> String {
    text::json(&data.to_string()).replace('<', "\\u003c")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_of_strangers_stay_text() {
        let name = "</script><script>alert(1)</script><!--\u{202e}&";
        let data = serde_json::json!({ "name": name });
        let mut out = Vec::new();
        write(name, &data, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert_eq!(page.matches("</script>").count(), INDEX.matches("</script>").count());
        assert!(!page.contains("alert(1)</script>") && !page.contains("<!--"));
        let start = page.find("{\"name\"").unwrap();
        let end = page[start..].find("</script>").unwrap();
        let read: Value = serde_json::from_str(page[start..start + end].trim()).unwrap();
        assert_eq!(read, data);
    }

    #[test]
    fn the_page_is_small_and_asks_no_network() {
        let mut out = Vec::new();
        write("", &Value::Null, &mut out).unwrap();
        assert!(out.len() < 200_000, "{}", out.len());
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("default-src 'none'") && !page.contains("{{"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
