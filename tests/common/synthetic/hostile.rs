//! ELF files that are expensive to read and cheap to write.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where the table of symbols begins; functions lie before it.
const SYMBOLS_AT: u64 = 0x1_0000;
/// Functions, `push %rbp; mov %rsp,%rbp; nop; nop; pop %rbp; ret` each.
const CODE_AT: u64 = 0x1000;
const CODE: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x5d, 0xc3];
const SYMBOL: u64 = 24;

/// A shared object of code, symbols and their names. What is not written of it is a hole.
pub struct Hostile {
    pub name: &'static str,
    /// The bound that it is beyond, as in the verdict.
    pub beyond: &'static str,
    /// Bytes of the table of symbols and of their names, as in the header of the file.
    symbols: u64,
    names: u64,
    /// Symbols that are written; the n-th has the name at `name_at(n)` and stands for the function at `code_at(n)`.
    written: u64,
    name_at: fn(u64) -> u32,
    code_at: fn(u64) -> u64,
    /// What is written of the names.
    text: fn() -> Vec<u8>,
    /// Bytes of the segment with the code.
    loaded: u64,
}

const SMALL: Hostile = Hostile {
    name: "small.so",
    beyond: "",
    symbols: 3 * SYMBOL,
    names: 0x1000,
    written: 3,
    name_at: |n| [0, 1, 9][n as usize % 3],
    code_at: |n| CODE_AT + 8 * n,
    text: || b"\0H5Fopen\0H5Fclose\0".to_vec(),
    loaded: SYMBOLS_AT,
};

/// Files that are each beyond another bound.
pub const FILES: [Hostile; 7] = [
    Hostile { name: "long.so", beyond: "bytes, more than 1073741824", names: 2 << 30, ..SMALL },
    // All of it a hole.
    Hostile {
        name: "claims.so",
        beyond: "more than 4194304 symbols",
        symbols: 500_000_000 / SYMBOL * SYMBOL,
        written: 0,
        ..SMALL
    },
    Hostile {
        name: "many.so",
        beyond: "more than 4194304 symbols",
        symbols: 6_000_000 * SYMBOL,
        written: 6_000_000,
        name_at: |_| 1,
        ..SMALL
    },
    Hostile {
        name: "names.so",
        beyond: "more than 402653184 bytes of symbols and headers",
        names: 900_000_000,
        ..SMALL
    },
    // Two million symbols share a name of 0.9 MB.
    Hostile {
        name: "shared_name.so",
        beyond: "more than 536870912 bytes of symbol names",
        symbols: 2_000_000 * SYMBOL,
        names: 1 << 20,
        written: 2_000_000,
        name_at: |n| 1 + (n % 1000) as u32,
        text: || [b"\0_ZN".to_vec(), b"1aE".repeat(300_000), b"\0".to_vec()].concat(),
        ..SMALL
    },
    Hostile {
        name: "one_name.so",
        beyond: "more than 1048576 bytes of one symbol's name",
        names: 2 << 20,
        text: || [b"\0".to_vec(), b"a".repeat(1_500_000), b"\0".to_vec()].concat(),
        ..SMALL
    },
    Hostile {
        name: "wanted.so",
        beyond: "more than 8192 symbols of the names that are looked for",
        symbols: 20_000 * SYMBOL,
        written: 20_000,
        name_at: |n| [1, 9][n as usize % 2],
        // In the middle of instructions, too.
        code_at: |n| CODE_AT + n,
        ..SMALL
    },
];

/// One with a function that is looked for, and a segment of a gigabyte.
pub const LOADED: Hostile = Hostile {
    name: "loaded.so",
    beyond: "more than 536870912 bytes of code, data and symbols",
    loaded: 900_000_000,
    ..SMALL
};

impl Hostile {
    /// Writes it into a directory.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let path = dir.join(self.name);
        let file = File::create(&path).unwrap();
        let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).unwrap();
        let names_at = SYMBOLS_AT + self.symbols;
        let sections_at = (names_at + self.names).max(self.loaded);
        let section_names = b"\0.text\0.dynsym\0.dynstr\0.shstrtab\0";
        put(&header(sections_at, self.loaded), 0);
        put(&CODE.repeat((SYMBOLS_AT - CODE_AT) as usize / CODE.len()), CODE_AT);
        // There are millions, and this is not optimised: as few steps for each as there can be.
        let symbol = |n: u64| {
            let fields =
                u128::from((self.name_at)(n)) | (0x12 << 32) | (1 << 48) | (u128::from((self.code_at)(n)) << 64);
            [fields.to_le_bytes().as_slice(), &8_u64.to_le_bytes()].concat()
        };
        for from in (0..self.written).step_by(1 << 16) {
            let mut some = Vec::with_capacity((SYMBOL as usize) << 16);
            for n in from..self.written.min(from + (1 << 16)) {
                some.extend_from_slice(&symbol(n));
            }
            put(&some, SYMBOLS_AT + from * SYMBOL);
        }
        put(&(self.text)(), names_at);
        let sections = [
            section([0; 10]),
            section([1, 1, 6, CODE_AT, CODE_AT, 0x1000, 0, 0, 16, 0]),
            section([7, 11, 2, SYMBOLS_AT, SYMBOLS_AT, self.symbols, 3, 1, 8, SYMBOL]),
            section([15, 3, 2, names_at, names_at, self.names, 0, 0, 1, 0]),
            section([23, 3, 0, 0, sections_at + 5 * 64, section_names.len() as u64, 0, 0, 1, 0]),
        ];
        put(&sections.concat(), sections_at);
        put(section_names, sections_at + 5 * 64);
        path
    }
}

/// Numbers of so many bytes each.
fn numbers(of: &[(u64, usize)]) -> Vec<u8> {
    of.iter().flat_map(|(number, size)| number.to_le_bytes().into_iter().take(*size)).collect()
}

/// The header of the file and that of its segment.
fn header(sections_at: u64, loaded: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend(numbers(&[(3, 2), (62, 2), (1, 4), (CODE_AT, 8), (64, 8), (sections_at, 8), (0, 4)]));
    bytes.extend(numbers(&[(64, 2), (56, 2), (1, 2), (64, 2), (5, 2), (4, 2)]));
    bytes.extend(numbers(&[(1, 4), (5, 4), (0, 8), (0, 8), (0, 8), (loaded, 8), (loaded, 8), (0x1000, 8)]));
    bytes
}

fn section(fields: [u64; 10]) -> Vec<u8> {
    let sizes = [4, 4, 8, 8, 8, 8, 4, 4, 8, 8];
    numbers(&std::iter::zip(fields, sizes).collect::<Vec<_>>())
}

/// Small and sound.
pub fn sound(dir: &Path) -> PathBuf {
    SMALL.write(dir)
}
