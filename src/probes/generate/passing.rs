//! Where structures by value are passed: in registers, in memory, or by their address.

use crate::probes::generate::dwarf::{At, DEPTH, Types, base};
use crate::probes::generate::signature::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Int,
    Float,
}

impl Types<'_> {
    /// A C++ object that must not be copied byte by byte is passed by its address. GCC does not mark that: a destructor does,
    /// of the class or of what it holds.
    pub fn is_passed_by_reference(&self, at: At, depth: usize) -> bool {
        let reference = u64::from(gimli::DW_CC_pass_by_reference.0);
        if let Some(convention) = self.number(at, gimli::DW_AT_calling_convention) {
            return convention == reference;
        }
        let Some(parts) = self.parts(at).filter(|_| depth < DEPTH) else { return false };
        parts.into_iter().any(|part| match self.entry(part).map(|entry| entry.tag) {
            Some(gimli::DW_TAG_subprogram) => {
                self.name(part, gimli::DW_AT_name).is_some_and(|name| name.starts_with('~'))
            }
            Some(gimli::DW_TAG_member | gimli::DW_TAG_inheritance) => {
                self.plain_type_at(part).is_some_and(|to| self.is_passed_by_reference(to, depth + 1))
            }
            _ => false,
        })
    }

    /// The type of an entry behind its other names.
    fn plain_type_at(&self, at: At) -> Option<At> {
        let mut at = self.type_at(at)?;
        for _ in 0..DEPTH {
            match self.entry(at)?.tag {
                gimli::DW_TAG_typedef | gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type => {
                    at = self.type_at(at)?;
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => return Some(at),
                _ => return None,
            }
        }
        None
    }

    /// Where a structure is passed: the classes of its two words. System V ABI for `x86_64`, 3.2.3.
    pub fn passing(&self, at: At, bytes: Option<u64>) -> Option<(u8, u8)> {
        let mut words = [None, None];
        let fits = bytes.is_some_and(|bytes| bytes <= 16) && self.classify(at, 0, &mut words, 0);
        let count = |class| words.iter().filter(|word| **word == Some(class)).count() as u8;
        fits.then(|| (count(Class::Int), count(Class::Float)))
    }

    /// Notes the classes of a type at an offset; false when it must be in memory.
    fn classify(&self, at: At, offset: u64, words: &mut [Option<Class>; 2], depth: usize) -> bool {
        let Some(entry) = self.entry(at).filter(|_| depth < DEPTH) else { return false };
        let bytes = self.number(at, gimli::DW_AT_byte_size).unwrap_or(8);
        let inner = |words: &mut _| self.type_at(at).is_some_and(|to| self.classify(to, offset, words, depth + 1));
        let mut note = |class: Class| {
            let Some(word) = words.get_mut((offset / 8) as usize) else { return false };
            // An integer anywhere in a word puts the whole of it into an integer register.
            *word = if *word == Some(Class::Int) { *word } else { Some(class) };
            true
        };
        match entry.tag {
            gimli::DW_TAG_base_type => match base(self.number(at, gimli::DW_AT_encoding), Some(bytes)) {
                Shape::Float { bytes: ..=8 } => note(Class::Float),
                Shape::Int { bytes: ..=8, .. } | Shape::Bool => note(Class::Int),
                _ => false,
            },
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_enumeration_type => note(Class::Int),
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_typedef => inner(words),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let members = self.parts(at).map(|parts| parts.into_iter().filter(|part| self.is_member(*part)));
                members.is_some_and(|mut members| {
                    members.all(|member| {
                        let into = self.number(member, gimli::DW_AT_data_member_location).unwrap_or(0);
                        let to = self.type_at(member);
                        to.is_some_and(|to| self.classify(to, offset + into, words, depth + 1))
                    })
                })
            }
            // Arrays in small structures: too rare to be worth their arithmetic.
            _ => false,
        }
    }

    /// Does it take room in its structure? Static members do not.
    fn is_member(&self, at: At) -> bool {
        self.entry(at).is_some_and(|entry| match entry.tag {
            gimli::DW_TAG_inheritance => true,
            gimli::DW_TAG_member => entry.attr(gimli::DW_AT_external).is_none(),
            _ => false,
        })
    }

    /// What a structure consists of.
    fn parts(&self, at: At) -> Option<Vec<At>> {
        let mut tree = self.unit(at)?.entries_tree(Some(at.entry)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut parts = Vec::new();
        while let Some(child) = children.next().ok()? {
            parts.push(At { entry: child.entry().offset, ..at });
        }
        Some(parts)
    }
}
