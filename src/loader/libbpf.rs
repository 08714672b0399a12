//! What libbpf can do and libbpf-rs has no names for: two objects with the same maps, loaded at the same time, and waiting for rings
//! and something else.
#![allow(unsafe_code)]

use crate::skel::OpenIotraceSkel;
use libbpf_rs::skel::OpenSkel as _;
use libbpf_rs::{AsRawLibbpf as _, RingBuffer, libbpf_sys};
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// The maps of an object by name.
pub type Maps = Vec<(OsString, OwnedFd)>;

/// What is made by one thread and used by another one, which no other thread has meanwhile.
pub struct Sendable<T>(pub T);

// SAFETY: libbpf's objects have no tie to a thread (libbpf README, "thread safety": none of its own, so one thread at a time).
unsafe impl<T> Send for Sendable<T> {}

impl<T> Sendable<T> {
    /// Moves all of it into a closure.
    pub fn get(self) -> T {
        self.0
    }
}

/// Makes the maps of an object before its programs are loaded.
///
/// # Errors
/// When the kernel refuses one, or a program does not suit it.
pub fn prepare(open: &OpenIotraceSkel<'_>) -> Result<Maps, libbpf_rs::Error> {
    let object = open.open_object().as_libbpf_object();
    // SAFETY: the object is open and nobody else uses it.
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
/// When the kernel does not tell what they are.
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
