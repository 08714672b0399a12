//! What libbpf can do and libbpf-rs has no names for: two objects with the same maps, loaded at the same time, and
//! waiting for rings and something else.
#![allow(unsafe_code)]

use crate::skel::{IotraceSkel, OpenIotraceSkel};
use libbpf_rs::skel::OpenSkel as _;
use libbpf_rs::{AsRawLibbpf as _, OpenObject, RingBuffer, libbpf_sys};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// The maps of an object by name.
pub type Maps = Vec<(OsString, OwnedFd)>;

/// Uninitialised slots for objects, on their way to the thread that opens them.
pub struct ObjectSlots<'obj, const N: usize>([&'obj mut MaybeUninit<OpenObject>; N]);

// SAFETY: nothing is in them yet, and no other thread has them.
unsafe impl<const N: usize> Send for ObjectSlots<'_, N> {}

impl<'obj, const N: usize> ObjectSlots<'obj, N> {
    pub const fn new(slots: [&'obj mut MaybeUninit<OpenObject>; N]) -> Self {
        Self(slots)
    }

    pub fn take(self) -> [&'obj mut MaybeUninit<OpenObject>; N] {
        self.0
    }
}

/// A loaded object, on its way from the thread that loaded it.
pub struct Object<'obj>(Option<IotraceSkel<'obj>>);

// SAFETY: one thread after the other has it. Of a thread libbpf keeps no more than the text of an error
// (libbpf_utils.c).
unsafe impl Send for Object<'_> {}

impl<'obj> Object<'obj> {
    pub const fn new(loaded: Option<IotraceSkel<'obj>>) -> Self {
        Self(loaded)
    }

    pub fn take(self) -> Option<IotraceSkel<'obj>> {
        self.0
    }
}

/// Makes the maps of an object before its programs are loaded.
///
/// # Errors
/// When the kernel refuses one, or a program does not suit it.
pub fn prepare(open: &OpenIotraceSkel<'_>) -> Result<Maps, libbpf_rs::Error> {
    let object = open.open_object().as_libbpf_object();
    // SAFETY: the object is open and no other thread uses it.
    let ret = unsafe { libbpf_sys::bpf_object__prepare(object.as_ptr()) };
    if ret != 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-ret));
    }
    let mut maps = Vec::new();
    for map in open.open_object().maps() {
        // SAFETY: the map is of the object above.
        let fd = unsafe { libbpf_sys::bpf_map__fd(map.as_libbpf_object().as_ptr()) };
        if fd >= 0 {
            // SAFETY: the object has its maps since it was prepared, and keeps them open meanwhile.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            maps.push((map.name().to_owned(), fd.try_clone_to_owned()?));
        }
    }
    Ok(maps)
}

/// Has an object use these maps instead of its own.
///
/// # Errors
/// When the kernel does not return them.
pub fn take(open: &mut OpenIotraceSkel<'_>, maps: &Maps) -> Result<(), libbpf_rs::Error> {
    for mut map in open.open_object_mut().maps_mut() {
        if let Some((_, fd)) = maps.iter().find(|(name, _)| *name == map.name()) {
            map.reuse_fd(fd.as_fd())?;
        }
    }
    Ok(())
}

/// The descriptor that can be read when a ring fills.
pub fn fills<'a>(rings: &'a RingBuffer<'_>) -> BorrowedFd<'a> {
    // SAFETY: it is open as long as the rings are.
    unsafe { BorrowedFd::borrow_raw(rings.epoll_fd()) }
}
