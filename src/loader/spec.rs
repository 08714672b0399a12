//! Catalog rows as the kernel side sees them (`struct iot_spec`).

use crate::catalog::{Fails, Role, Row, Src, syscall_number};
use crate::skel::types as t;
use crate::words::Kind;

/// Open MPI 4 and 5: `size` in `struct opal_datatype_t` (`opal/datatype/opal_datatype.h`): a 16-byte object
/// header, then flags (2 bytes), id (2), `bdt_used` (4).
const OMPI_DATATYPE_SIZE: u32 = 24;
/// Open MPI 4 and 5: `_ucount`, bytes transferred, in `struct ompi_status_public_t` (mpi.h).
const OMPI_STATUS_UCOUNT: u32 = 16;

/// `iot_spec.bits` of `bpf/spec.h` (macros do not reach the skeleton).
mod bits {
    pub const LIFE: u8 = 0x01;
    pub const FD: u8 = 0x02;
    pub const FD_RET: u8 = 0x04;
    pub const STAT: u8 = 0x08;
    pub const STATX: u8 = 0x10;
    pub const ONLY: u8 = 0x20;
    pub const PHASE: u8 = 0x40;
}

fn src(from: Src) -> t::iot_src {
    use t::iot_how as H;
    let (how, a, b, k) = match from {
        Src::None => (H::IOT_NONE, 0, 0, 0),
        Src::Arg(a) => (H::IOT_ARG, a, 0, 0),
        Src::Int(a) => (H::IOT_INT, a, 0, 0),
        Src::In(a) => (H::IOT_IN, a, 0, 0),
        Src::Out(a) => (H::IOT_OUT, a, 0, 0),
        Src::Mul(a, b) => (H::IOT_MUL, a, b, 0),
        Src::Typed(a, b) => (H::IOT_TYPED, a, b, OMPI_DATATYPE_SIZE),
        Src::Strlen(a) => (H::IOT_STRLEN, a, 0, 0),
        Src::Ret => (H::IOT_RET, 0, 0, 0),
        Src::RetTimes(a) => (H::IOT_RET_TIMES, a, 0, 0),
        Src::Status(a) => (H::IOT_STATUS, a, 0, OMPI_STATUS_UCOUNT),
        Src::Asked => (H::IOT_ASKED, 0, 0, 0),
        Src::Iov(a, b) => (H::IOT_IOV, a, b, 0),
        Src::Pos => (H::IOT_POS, 0, 0, 0),
        Src::Scaled(a, k) => (H::IOT_SCALED, a, 0, u32::from(k)),
        Src::RetScaled(k) => (H::IOT_RET_SCALED, 0, 0, u32::from(k)),
    };
    t::iot_src { how: how.0 as u8, a, b, pad: 0, k }
}

fn fails(fails: Fails) -> u8 {
    use t::iot_fails as f;
    let wire = match fails {
        Fails::Never => f::IOT_FAILS_NEVER,
        Fails::Negative => f::IOT_FAILS_NEGATIVE,
        Fails::NegativeInt => f::IOT_FAILS_NEGATIVE_INT,
        Fails::Zero => f::IOT_FAILS_ZERO,
        Fails::NonZero => f::IOT_FAILS_NONZERO,
        Fails::Eof => f::IOT_FAILS_EOF,
    };
    wire.0 as u8
}

/// The kernel side's form of a row.
pub fn spec(row: &Row) -> t::iot_spec {
    let arg = |a: Option<u8>| a.map_or(-1, |a| a as i8);
    let syscall = syscall_number(row.symbol).is_some() && row.family == crate::catalog::Family::Syscall;
    let mut bits = 0;
    if row.role != Role::Use && row.role != Role::None || row.kind == Kind::Open {
        bits |= bits::LIFE;
    }
    if row.is_phase() {
        bits |= bits::PHASE | bits::LIFE;
    }
    if syscall {
        bits |= match row.role {
            Role::Use | Role::Close | Role::Dup => bits::FD,
            Role::Open => bits::FD_RET,
            _ => 0,
        };
    }
    if let Some((_, extended)) = row.stat {
        bits |= if extended { bits::STATX } else { bits::STAT };
    }
    let (only_arg, only) = row.only.map_or((0, [0, 0]), |(arg, a, b)| {
        bits |= bits::ONLY;
        (u32::from(arg), [a, b])
    });
    t::iot_spec {
        handle: src(row.handle),
        len: src(row.len),
        off: src(row.off),
        got: src(row.got),
        path: [arg(row.path), arg(row.path2)],
        base: [arg(row.base), arg(row.base2)],
        fails: fails(row.fails),
        layer: row.layer as u8,
        bits,
        stat_arg: row.stat.map_or(0, |(arg, _)| arg),
        only,
        only_arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::rows;

    #[test]
    fn calls_that_change_handles_go_to_the_ring_that_must_not_lose() {
        for row in rows() {
            let life = spec(&row).bits & bits::LIFE != 0;
            let changes = matches!(row.role, Role::Open | Role::Close | Role::Dup | Role::Rename | Role::Unlink);
            assert_eq!(life, changes, "{}", row.symbol);
        }
    }
}
