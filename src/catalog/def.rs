//! How rows are written down: what a call does decides which values its row takes.

use crate::catalog::effect::{Accessor, Effect};
use crate::catalog::role::{
    Close, CloseRange, Command, Data, Does, Dup, Hdf5, HintSet, Inherit, Inner, InnerValue, Jump, Lock, Names, Open,
    OpenedIn, Reopen, Request, RequestAction, Role, Seek, Submit, SubmitAction, Variables,
};
use crate::catalog::row::Row;
use crate::catalog::variables::Meaning;
use crate::catalog::{About, Array, Copies, Fails, Family, Src, Status};
use crate::vocabulary::{Kind, Layer};

/// A row that is being written down, of a call that does `P`: it takes the values that `P` has, and no others.
#[derive(Clone, Copy)]
pub(super) struct Def<P> {
    row: Row,
    does: P,
}

/// A function that uses a handle, or is given none.
pub(super) const fn row(family: Family, layer: Layer, symbol: &'static str, kind: Kind) -> Def<Data> {
    let does = Data { uses: true, handle: Src::None, len: Src::None, off: Src::None, got: Src::None };
    let row = Row {
        family,
        layer,
        symbol,
        op: symbol,
        kind,
        does: Does::Data(does),
        path: None,
        names: false,
        path2: None,
        base: None,
        base2: None,
        fails: Fails::Negative,
        flags: 0,
        object: None,
        only: None,
        stat: None,
        wants: [None; 3],
        wants_every: false,
        arrays: [None; 4],
        inside: false,
        awaited: false,
        statuses: None,
        outermost: false,
        quiet: 0,
        descriptor: false,
        about: About::Nothing,
        otherwise: false,
        mapped: false,
        copies: Copies::Nothing,
        early: false,
        sockets: false,
        secondary: false,
        brief: false,
        pauses: false,
        slow_path: None,
    };
    Def { row, does }
}

/// Rows of a table, each finished.
macro_rules! rows {
    ($($row:expr),+ $(,)?) => { &[$($row.done()),+] };
}
pub(super) use rows;

macro_rules! finish {
    ($($payload:ident)+) => {$(
        impl Def<$payload> {
            pub const fn done(self) -> Row {
                Row { does: Does::$payload(self.does), ..self.row }
            }
        }
        impl From<Def<$payload>> for Row {
            fn from(def: Def<$payload>) -> Self {
                def.done()
            }
        }
    )+};
}
finish!(Data Seek Command Lock Open Reopen Dup Close CloseRange Inherit Names HintSet Submit Request Hdf5 Variables Inner Jump);

/// Setters of fields of the row.
macro_rules! fields {
    ($($name:ident($($arg:ident: $type:ty),*) $field:ident = $value:expr;)+) => {$(
        pub const fn $name(mut self $(, $arg: $type)*) -> Self {
            self.row.$field = $value;
            self
        }
    )+};
}

/// Setters of values.
macro_rules! values {
    ($($name:ident = $field:ident)+) => {$(
        pub const fn $name(mut self, src: Src) -> Self {
            self.does.$field = src;
            self
        }
    )+};
}

impl<P: Copy> Def<P> {
    fields! {
        family(family: Family) family = family;
        symbol(symbol: &'static str) symbol = symbol;
        kind(kind: Kind) kind = kind;
        op(op: &'static str) op = op;
        path(arg: u8) path = Some(arg);
        path2(arg: u8) path2 = Some(arg);
        base(arg: u8) base = Some(arg);
        base2(arg: u8) base2 = Some(arg);
        fails(fails: Fails) fails = fails;
        flags(flags: i32) flags = flags;
        only(arg: u8, a: u32, b: u32) only = Some((arg, a, b));
        stat(arg: u8, extended: bool) stat = Some((arg, extended));
        inside() inside = true;
        outermost() outermost = true;
        quiet(result: u8) quiet = result;
        otherwise() otherwise = true;
        early() early = true;
        sockets() sockets = true;
        secondary() secondary = true;
    }

    /// Argument that the call fills with a name.
    pub const fn names(mut self, arg: u8) -> Self {
        self.row.path = Some(arg);
        self.row.names = true;
        self
    }
    pub const fn wants(mut self, at: usize, value: InnerValue) -> Self {
        self.row.wants[at] = Some(value);
        self
    }
    pub const fn wants_every(mut self, value: InnerValue) -> Self {
        self.row.wants_every = true;
        self.wants(0, value)
    }
    pub const fn array(mut self, at: usize, array: Array) -> Self {
        self.row.arrays[at] = Some(array);
        self
    }
    /// The same function by another name.
    pub const fn renamed(self, symbol: &'static str) -> Self {
        self.symbol(symbol).op(symbol)
    }
    /// The same function does something else, with values of its own.
    const fn with<Q: Copy>(self, does: Q) -> Def<Q> {
        Def { row: self.row, does }
    }
}

impl Def<Data> {
    values! { handle = handle len = len off = off got = got }

    fields! {
        descriptor() descriptor = true;
        about(what: About) about = what;
        mapped() mapped = true;
        copies(what: Copies) copies = what;
        brief() brief = true;
        slow_path(does: Kind) slow_path = Some(does);
    }

    /// Names a file by path, or none; a handle that it is given is none of this layer's.
    pub const fn unrelated(mut self) -> Self {
        self.does.uses = false;
        self
    }

    /// Its handle, for a role that has no place for other values.
    const fn handle_alone(self) -> Src {
        let Data { len, off, got, .. } = self.does;
        assert!(matches!((len, off, got), (Src::None, Src::None, Src::None)), "values that the role has no place for");
        self.does.handle
    }
    const fn no_values(self) {
        assert!(matches!(self.handle_alone(), Src::None), "a handle that the role has no place for");
    }

    pub const fn seeks(self, position: Src, asked: Src, whence: Src) -> Def<Seek> {
        self.with(Seek { handle: self.handle_alone(), position, asked, whence })
    }
    pub const fn command(self, command: Src) -> Def<Command> {
        self.with(Command { handle: self.handle_alone(), command })
    }
    pub const fn locks(self, command: Src, lock: Src) -> Def<Lock> {
        self.with(Lock { handle: self.handle_alone(), command, lock })
    }
    pub const fn inherits(self, cloexec: Src) -> Def<Inherit> {
        self.with(Inherit { handle: self.handle_alone(), cloexec, command: Src::None })
    }
    pub const fn opens(self, handle: Src) -> Def<Open> {
        self.no_values();
        self.with(Open { handle, mode: Src::None, opened_in: OpenedIn::Nothing, got: Src::None })
    }
    pub const fn reopens(self, handle: Src, old: Src) -> Def<Reopen> {
        self.no_values();
        self.with(Reopen { handle, old, mode: Src::None })
    }
    pub const fn dups(self, handle: Src, old: Src) -> Def<Dup> {
        self.no_values();
        self.with(Dup { handle, old, cloexec: Src::None, command: Src::None })
    }
    pub const fn closes(self, handle: Src) -> Def<Close> {
        self.no_values();
        self.with(Close { handle, position: Src::None })
    }
    pub const fn closes_range(self, first: Src, last: Src, flags: Src) -> Def<CloseRange> {
        self.no_values();
        self.with(CloseRange { first, last, flags })
    }
    pub const fn changes(self, names: Names) -> Def<Names> {
        self.no_values();
        self.with(names)
    }
    pub const fn hint_set(self, set: HintSet) -> Def<HintSet> {
        self.no_values();
        self.with(set)
    }
    /// Submits an operation that moves what the row has so far.
    pub const fn submits(self, action: SubmitAction, request: Src) -> Def<Submit> {
        assert!(matches!(self.does.got, Src::None), "a result besides the request");
        self.with(Submit { data: self.does, action, request })
    }
    /// Waits for, or asks about, the request that the handle is.
    pub const fn request(self, action: RequestAction) -> Def<Request> {
        let (outcome, result) = (Src::None, Src::None);
        let uses = self.does.uses;
        self.with(Request { action, uses, request: self.handle_alone(), moved: Src::None, outcome, result })
    }
    pub const fn gives(self, gives: InnerValue, value: Src) -> Def<Inner> {
        self.no_values();
        self.with(Inner { gives, value, accessor: None })
    }
    pub const fn jump(self, at: u16) -> Def<Jump> {
        self.no_values();
        self.with(Jump { at })
    }
    pub const fn effect(self, effect: Effect) -> Def<Hdf5> {
        let role = if self.does.uses { Role::Use } else { Role::None };
        self.with(Hdf5 { role, handle: self.handle_alone(), from: Src::None, effect })
    }
    /// A call whose values `NetCDF` has names for.
    pub const fn variables(self) -> Def<Variables> {
        self.with(Variables {
            role: Role::Use,
            meaning: Meaning::Nothing,
            handle: self.handle_alone(),
            len: Src::None,
            id: Src::None,
            got: Src::None,
            submits: false,
            cancels: false,
        })
    }
}

impl Def<Open> {
    values! { mode = mode got = got }
    fields! { object(class: &'static str) object = Some(class); }

    pub const fn opened_in(mut self, handle: Src) -> Self {
        self.does.opened_in = OpenedIn::Handle(handle);
        self
    }
    pub const fn with_hints(mut self, set: Src) -> Self {
        self.does.opened_in = OpenedIn::Hints(set);
        self
    }
    pub const fn effect(self, effect: Effect) -> Def<Hdf5> {
        let from = match self.does.opened_in {
            OpenedIn::Handle(from) => from,
            _ => Src::None,
        };
        assert!(matches!(self.does.mode, Src::None) && matches!(self.does.got, Src::None), "a mode besides the effect");
        self.with(Hdf5 { role: Role::Open, handle: self.does.handle, from, effect })
    }
    /// The handle, if it is not the result.
    pub const fn handle(mut self, handle: Src) -> Self {
        self.does.handle = handle;
        self
    }
}

impl Def<Dup> {
    values! { cloexec = cloexec command = command }

    pub const fn effect(self, effect: Effect) -> Def<Hdf5> {
        self.with(Hdf5 { role: Role::Dup, handle: self.does.handle, from: self.does.old, effect })
    }
}

impl Def<Close> {
    values! { position = position }

    pub const fn effect(self, effect: Effect) -> Def<Hdf5> {
        self.with(Hdf5 { role: Role::Close, handle: self.does.handle, from: Src::None, effect })
    }
}

impl Def<Inherit> {
    values! { command = command }
}

impl Def<Submit> {
    fields! { awaited() awaited = true; }
}

impl Def<Request> {
    values! { moved = moved outcome = outcome result = result }

    pub const fn statuses(mut self, at: usize, array: Array, status: Status) -> Self {
        self.row.statuses = Some(status);
        self.array(at, array)
    }
}

impl Def<Hdf5> {
    fields! { object(class: &'static str) object = Some(class); }
}

impl Def<Variables> {
    values! { len = len id = id got = got handle = handle }
    fields! {
        object(class: &'static str) object = Some(class);
        awaited() awaited = true;
    }

    pub const fn meaning(mut self, what: Meaning) -> Self {
        self.does.meaning = what;
        self
    }
    pub const fn unrelated(mut self) -> Self {
        self.does.role = Role::None;
        self
    }
    /// Makes a handle; `len` is its mode, `id` the handle that it is opened in.
    pub const fn opens(mut self, handle: Src) -> Self {
        self.does.role = Role::Open;
        self.does.handle = handle;
        self
    }
    pub const fn closes(mut self) -> Self {
        self.does.role = Role::Close;
        self
    }
    /// Submits a request, which counts within the file.
    pub const fn submits(mut self, request: Src) -> Self {
        self.does.submits = true;
        self.does.got = request;
        self
    }
    pub const fn cancels(mut self) -> Self {
        self.does.cancels = true;
        self
    }
    /// Waits for, or cancels, `moved` requests of the file.
    pub const fn requests(self, action: RequestAction, count: Src) -> Def<Request> {
        let (request, outcome, result) = (self.does.handle, Src::None, Src::None);
        self.with(Request { action, uses: true, request, moved: count, outcome, result })
    }
    pub const fn gives(self, gives: InnerValue, value: Src) -> Def<Inner> {
        self.with(Inner { gives, value, accessor: None })
    }
}

impl Def<Inner> {
    pub const fn accessor(mut self, what: Accessor) -> Self {
        self.does.accessor = Some(what);
        self
    }
}
