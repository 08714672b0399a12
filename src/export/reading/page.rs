//! The header of a page of a Parquet file: as much of it as has the size of the page. The format is Thrift's compact
//! protocol (`parquet.thrift` of parquet-format, `thrift-compact-protocol.md` of Thrift).

/// What a header has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    pub kind: i64,
    pub uncompressed: i64,
    pub compressed: i64,
    pub values: i64,
    pub encoding: i64,
    /// Bytes of the header itself.
    pub length: usize,
}

/// Types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Structs in structs: statistics in the header of a page in its own.
const DEPTH: usize = 8;

impl Header {
    pub const DICTIONARY: i64 = 2;
    pub const DELTA_BYTE_ARRAY: i64 = 7;

    /// `None`: it is damaged, or longer than this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut header, mut rest) = (Self::default(), Bytes(bytes));
        let mut seen = [false; 3];
        rest.fields(|id, kind, rest| {
            match (id, kind) {
                (1..=3, I32) => {
                    let number = rest.signed()?;
                    *[&mut header.kind, &mut header.uncompressed, &mut header.compressed][id as usize - 1] = number;
                    seen[id as usize - 1] = true;
                }
                // The headers of data, of a dictionary, and of data in the second version.
                (5 | 7 | 8, STRUCT) => rest.fields(|inner, kind, rest| {
                    let number = if kind == I32 { rest.signed()? } else { return rest.skip(kind, DEPTH) };
                    match (inner, id) {
                        (1, _) => header.values = number,
                        (2, 5 | 7) | (4, 8) => header.encoding = number,
                        _ => {}
                    }
                    Some(())
                })?,
                _ => rest.skip(kind, DEPTH)?,
            }
            Some(())
        })?;
        header.length = bytes.len() - rest.0.len();
        (seen == [true; 3] && header.uncompressed >= 0 && header.compressed >= 0 && header.values >= 0)
            .then_some(header)
    }
}

/// What is left to be read.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Numbers with a sign alternate: 0, -1, 1, -2.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        // As wide as the decoder takes it.
        Some(i64::from(((number >> 1) as i64 ^ -((number & 1) as i64)) as i32))
    }

    /// Calls `each` with the number and the type of every field of a struct.
    fn fields(&mut self, mut each: impl FnMut(i64, u8, &mut Self) -> Option<()>) -> Option<()> {
        let mut id = 0;
        loop {
            let byte = self.byte()?;
            if byte.trailing_zeros() >= 4 {
                return Some(());
            }
            id = if byte >> 4 == 0 { self.signed()? } else { id + i64::from(byte >> 4) };
            each(id, byte & 0x0f, self)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.take(1),
            I16 | I32 | I64 => self.number().map(drop),
            DOUBLE => self.take(8),
            BINARY => {
                let length = usize::try_from(self.number()?).ok()?;
                self.take(length)
            }
            LIST | SET => {
                let byte = self.byte()?;
                let items = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
                // Truth values of lists have a byte each.
                let kind = if byte & 0x0f <= FALSE { BYTE } else { byte & 0x0f };
                (0..items).try_for_each(|_| self.skip(kind, depth))
            }
            STRUCT => self.fields(|_, kind, rest| rest.skip(kind, depth)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// type 2, 200 bytes, of them 100 on disk, a checksum, a dictionary of 3 values, plain.
    const DICTIONARY: [u8; 17] = [0x15, 4, 0x15, 0x90, 3, 0x15, 0xc8, 1, 0x15, 2, 0x3c, 0x15, 6, 0x15, 0, 0, 0];

    #[test]
    fn a_header_is_read() {
        let expected = Header { kind: 2, uncompressed: 200, compressed: 100, values: 3, encoding: 0, length: 17 };
        assert_eq!(Header::parse(&DICTIONARY), Some(expected));
        for length in 0..DICTIONARY.len() {
            assert_eq!(Header::parse(&DICTIONARY[..length]), None, "{length}");
        }
        // Data of 9 values in encoding 7, with statistics and an unknown field.
        let data = [
            &[0x15, 0, 0x15, 2, 0x15, 2][..],
            &[0x2c, 0x15, 18, 0x15, 14, 0x3c, 0x18, 2, b'a', b'b', 0x11, 0, 0],
            &[0x59, 0x25, 1, 3, 0x08, 0x12, 1, b'x', 0, b'r', b'e', b's', b't'],
        ];
        let expected = Header { kind: 0, uncompressed: 1, compressed: 1, values: 9, encoding: 7, length: 28 };
        assert_eq!(Header::parse(&data.concat()), Some(expected));
        // Sizes below zero, and a list without an end.
        assert_eq!(Header::parse(&[0x15, 0, 0x15, 1, 0x15, 2, 0]), None);
        assert_eq!(Header::parse(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(header) = Header::parse(&bytes) {
                prop_assert!(header.length <= bytes.len() && header.uncompressed >= 0);
            }
        }
    }
}
