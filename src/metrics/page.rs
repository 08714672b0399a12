//! All metrics as they are now, as text.

use crate::metrics::families::ALL;
use crate::metrics::text::{Format, Text};

pub use crate::metrics::samples::{Node, Own, Page};

/// The whole page.
pub fn page(format: Format, page: &Page) -> String {
    let mut text = Text::new(format);
    for (family, samples) in &ALL {
        text.family(family);
        samples(&mut text, page);
    }
    text.finish()
}
