//! What is known of a function before anyone guesses what it does: its arguments, their types, and where they are passed.

use crate::catalog::value::ARGUMENTS;

/// A function with its types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub params: Vec<Param>,
    pub result: Type,
}

/// An argument. Its name is empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub ty: Type,
}

/// A type, as far as the calling convention and guessing need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// As it is written, without qualifiers: `size_t`, `struct store`. Empty for pointers that have no name of their own.
    pub name: String,
    pub shape: Shape,
}

/// What a value is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Void,
    Bool,
    Int {
        bytes: u8,
        signed: bool,
    },
    /// A number of 32 bits with names for its values.
    Enum,
    Float {
        bytes: u8,
    },
    /// `constant`: what it points at is not changed through it.
    Pointer {
        to: Box<Type>,
        constant: bool,
    },
    /// A structure or union by value, if `Some` in this many integer and floating-point registers, else in memory.
    Struct(Option<(u8, u8)>),
    /// Where it is passed is not known, and so not where the arguments behind it are.
    Unknown,
}

impl Type {
    pub fn new(name: &str, shape: Shape) -> Self {
        Self { name: name.to_owned(), shape }
    }

    pub fn pointer(to: Self, constant: bool) -> Self {
        Self::new("", Shape::Pointer { to: Box::new(to), constant })
    }

    pub fn void() -> Self {
        Self::new("void", Shape::Void)
    }

    /// The type as C text.
    pub fn text(&self) -> String {
        match &self.shape {
            Shape::Pointer { to, constant } if self.name.is_empty() => {
                let (qualifier, inner) = (if *constant { "const " } else { "" }, to.text());
                if inner.ends_with('*') { format!("{inner}{qualifier}*") } else { format!("{qualifier}{inner} *") }
            }
            _ if self.name.is_empty() => "?".to_owned(),
            _ => self.name.clone(),
        }
    }

    /// What it points at, and whether that is constant.
    pub fn pointee(&self) -> Option<(&Self, bool)> {
        if let Shape::Pointer { to, constant } = &self.shape { Some((to, *constant)) } else { None }
    }

    /// A string or a buffer of characters.
    pub fn is_char(&self) -> bool {
        matches!(self.shape, Shape::Int { bytes: 1, .. }) && self.name.contains("char")
    }
}

impl Signature {
    /// The function as C text.
    pub fn text(&self, name: &str) -> String {
        let param = |p: &Param| {
            let text = p.ty.text();
            let gap = if p.name.is_empty() || text.ends_with('*') { "" } else { " " };
            format!("{text}{gap}{}", p.name)
        };
        let params: Vec<String> = self.params.iter().map(param).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let result = self.result.text();
        let gap = if result.ends_with('*') { "" } else { " " };
        format!("{result}{gap}{name}({params})")
    }

    /// Where each argument is that can be read, as a catalog counts them: the integer registers, then the words of the stack
    /// above the return address. System V ABI for `x86_64`, 3.2.3.
    pub fn positions(&self) -> Vec<Option<u8>> {
        const INTS: u8 = 6;
        const FLOATS: u8 = 8;
        let (mut ints, mut floats) = (0_u8, 0_u8);
        // The next word of the stack, as long as the size of all that came before is known.
        let mut stack = Some(INTS);
        let mut known = true;
        match self.result.shape {
            // The address of the result is a hidden first argument.
            Shape::Struct(None) => ints = 1,
            Shape::Unknown => known = false,
            _ => {}
        }
        let mut position = |p: &Param| {
            let (need_ints, need_floats) = match p.ty.shape {
                Shape::Bool | Shape::Int { bytes: ..=8, .. } | Shape::Enum | Shape::Pointer { .. } => (1, 0),
                Shape::Int { .. } => (2, 0),
                Shape::Float { bytes: ..=8 } => (0, 1),
                // `long double` is passed in memory, like what is too large.
                Shape::Float { .. } | Shape::Struct(None) | Shape::Void => {
                    stack = None;
                    return None;
                }
                Shape::Struct(Some(needs)) => needs,
                Shape::Unknown => {
                    known = false;
                    return None;
                }
            };
            if !known {
                return None;
            }
            let readable = need_ints == 1 && need_floats == 0;
            if ints + need_ints <= INTS && floats + need_floats <= FLOATS {
                let at = ints;
                (ints, floats) = (ints + need_ints, floats + need_floats);
                return readable.then_some(at);
            }
            // Only single words: those of more may have to begin at an even place.
            let at = stack.filter(|_| need_ints + need_floats == 1);
            stack = at.map(|at| at.saturating_add(1));
            at.filter(|at| readable && *at < ARGUMENTS)
        };
        self.params.iter().map(&mut position).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn int(name: &str) -> Type {
        let (bytes, signed) = match name {
            "char" => (1, true),
            "int" => (4, true),
            "size_t" => (8, false),
            _ => (8, true),
        };
        Type::new(name, Shape::Int { bytes, signed })
    }

    pub fn double() -> Type {
        Type::new("double", Shape::Float { bytes: 8 })
    }

    pub fn to(ty: Type) -> Type {
        Type::pointer(ty, false)
    }

    pub fn constant(ty: Type) -> Type {
        Type::pointer(ty, true)
    }

    pub fn opaque(name: &str) -> Type {
        Type::new(name, Shape::Struct(None))
    }

    pub fn signature(result: Type, params: &[(&str, Type)]) -> Signature {
        let param = |(name, ty): &(&str, Type)| Param { name: (*name).to_owned(), ty: ty.clone() };
        Signature { params: params.iter().map(param).collect(), result }
    }

    #[test]
    fn only_integers_and_pointers_can_be_read() {
        let pair = |ints, floats| Type::new("struct pair", Shape::Struct(Some((ints, floats))));
        let positions = |params: &[Type]| {
            let named: Vec<(&str, Type)> = params.iter().map(|ty| ("", ty.clone())).collect();
            signature(Type::void(), &named).positions()
        };
        assert_eq!(positions(&[double(), int("int"), double(), to(Type::void())]), [None, Some(0), None, Some(1)]);
        // A structure of two registers, one in memory, one whose second register is a floating-point one.
        assert_eq!(
            positions(&[pair(2, 0), int("int"), opaque("struct big"), int("long")]),
            [None, Some(2), None, Some(3)]
        );
        assert_eq!(positions(&[pair(1, 1), int("int")]), [None, Some(1)]);
        // What has no register left is on the stack.
        let many = vec![int("int"); 14];
        let expected = (0..12).map(Some).chain([None, None]);
        assert_eq!(positions(&many), expected.collect::<Vec<_>>());
        let mixed = [vec![double(); 9], vec![int("int"); 7]].concat();
        let expected = [None; 9].into_iter().chain([0, 1, 2, 3, 4, 5, 7].map(Some));
        assert_eq!(positions(&mixed), expected.collect::<Vec<_>>());
        // What does not fit goes to memory as a whole, and leaves the last register to what comes after it.
        let full = [vec![int("int"); 5], vec![pair(2, 0), int("int"), int("int")]].concat();
        assert_eq!(positions(&full), [Some(0), Some(1), Some(2), Some(3), Some(4), None, Some(5), None]);
        assert_eq!(positions(&[Type::new("?", Shape::Unknown), int("int")]), [None, None]);
        assert_eq!(signature(opaque("struct big"), &[("a", int("int"))]).positions(), [Some(1)]);
    }

    #[test]
    fn text_reads_as_c() {
        let path = ("path", constant(int("char")));
        let open =
            signature(to(opaque("struct store")), &[path.clone(), ("out", to(to(int("int")))), ("n", int("size_t"))]);
        assert_eq!(open.text("st_open"), "struct store *st_open(const char *path, int **out, size_t n)");
        assert_eq!(signature(Type::void(), &[]).text("f"), "void f(void)");
    }
}
