//! A small number for each of very many files: a trace of months sees more files than a byte for each would be little.

use roaring::RoaringBitmap;

/// So many files later bitmaps are made smaller.
const OPTIMIZE: u32 = 1 << 14;

/// The number of the kind of each file, by id. Ids of one kind that follow each other take no memory of their own.
#[derive(Debug, Clone, Default)]
pub struct FileKinds {
    /// Ids by kind.
    ids: Vec<RoaringBitmap>,
    added: u32,
}

impl FileKinds {
    /// A file is of a kind. Numbers below 0 are no ids.
    pub fn set(&mut self, file: i32, kind: usize) {
        let Ok(file) = u32::try_from(file) else { return };
        if kind >= self.ids.len() {
            self.ids.resize_with(kind + 1, RoaringBitmap::new);
        }
        for (at, ids) in self.ids.iter_mut().enumerate() {
            if at == kind {
                ids.insert(file);
            } else {
                ids.remove(file);
            }
        }
        self.added += 1;
        if self.added >= OPTIMIZE {
            self.added = 0;
            for ids in &mut self.ids {
                ids.optimize();
            }
        }
    }

    /// The kind of a file: 0 of one that is not known.
    pub fn get(&self, file: Option<i32>) -> usize {
        let of = |file: u32| self.ids.iter().position(|ids| ids.contains(file));
        file.and_then(|file| of(u32::try_from(file).ok()?)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_the_kind_that_it_was_last_set_to() {
        let mut kinds = FileKinds::default();
        for (file, kind) in [(7, 2), (i32::MAX, 1), (8, 3), (7, 1)] {
            kinds.set(file, kind);
        }
        assert_eq!([Some(7), Some(8), Some(i32::MAX), Some(9), None].map(|file| kinds.get(file)), [1, 3, 1, 0, 0]);
    }

    /// 3 million files in an hour, of which each 100th is on another file system.
    #[test]
    fn millions_of_files_take_little_memory() {
        let mut kinds = FileKinds::default();
        for file in 0..3_000_000 {
            kinds.set(file, if file % 100 == 0 { 2 } else { 1 });
        }
        assert_eq!((kinds.get(Some(0)), kinds.get(Some(2_999_999))), (2, 1));
        let bytes: usize = kinds.ids.iter().map(RoaringBitmap::serialized_size).sum();
        assert!(bytes < 300_000, "{bytes}");
    }
}
