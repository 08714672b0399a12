//! Times and sizes with their units, as options, files of options and queries have them. A number alone is refused:
//! what it counts would be a guess.

/// Units of time with their ns.
const TIMES: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9), ("h", 3600e9)];
/// Units of size, as powers of 1024; `B` or `iB` may follow.
const SIZES: [(&str, f64); 4] = [("K", KIB), ("M", KIB * KIB), ("G", KIB * KIB * KIB), ("T", KIB * KIB * KIB * KIB)];
const KIB: f64 = 1024.0;
/// Times and sizes below this are whole numbers of ns and bytes in an `i64` and an `f64`.
const MAX: f64 = 9e18;

/// A time in ns: `500ms`, `1.5s`. 0 needs no unit.
///
/// # Errors
/// Names the form, and the unit that is missing or unknown.
pub fn time(text: &str) -> Result<i64, String> {
    let (number, unit) = parts(text).ok_or_else(|| format!("{text:?} is no time with its unit: 500ms, 30s, 5m, 1h"))?;
    let Some(per_unit) = ns_per(unit).or((unit.is_empty() && number == 0.0).then_some(1.0)) else {
        return Err(match unit {
            "" => format!("a time needs its unit: {number}s, {number}ms or {number}m"),
            _ => format!("unknown unit {unit:?}: ns, us, ms, s, m or h"),
        });
    };
    let ns = number * per_unit;
    if ns < MAX { Ok(ns.round() as i64) } else { Err(format!("{text:?} is too long")) }
}

/// A size in bytes: `16M`, `1.5GiB`.
///
/// # Errors
/// As of [`time`].
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = parts(text).ok_or_else(|| format!("{text:?} is no size with its unit: 16M, 1G"))?;
    let Some(per_unit) = bytes_per(unit) else {
        return Err(match unit {
            "" => "a size needs its unit (K, M, G or T): 16M, 1G".to_owned(),
            _ => format!("unknown unit {unit:?}: K, M, G or T"),
        });
    };
    let bytes = number * per_unit;
    if bytes < MAX { Ok(bytes.round() as u64) } else { Err(format!("{text:?} is too large")) }
}

/// What a unit of time has of ns.
pub fn ns_per(unit: &str) -> Option<f64> {
    TIMES.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns)
}

/// What a unit of size has of bytes, above one byte.
pub fn bytes_per(unit: &str) -> Option<f64> {
    let name = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit);
    SIZES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, bytes)| *bytes)
}

/// A number above or at zero, and what follows it.
fn parts(text: &str) -> Option<(f64, &str)> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    Some((digits.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(time(text), Ok(ns), "{text}");
        }
        assert_eq!(time("30"), Err("a time needs its unit: 30s, 30ms or 30m".to_owned()));
        assert_eq!(time("1y"), Err("unknown unit \"y\": ns, us, ms, s, m or h".to_owned()));
        assert!(time("soon").unwrap_err().contains("500ms, 30s"));
        for bad in ["", "s", "-1s", "1.2.3s", "5 s", "99999999999999h", "1e3s", "."] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("16M", 16 << 20), ("2GiB", 2 << 30), ("2GB", 2 << 30), ("1.5k", 1536), ("2T", 2 << 40)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert!(size("67108864").unwrap_err().starts_with("a size needs its unit"));
        for bad in ["", "M", "1", "-1M", "99999999T", "1P", "1 M", "1iB", "1B"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
