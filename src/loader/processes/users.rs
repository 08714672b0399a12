//! Users and groups of the node, without `getpwuid` and `getgrouplist`: a static program cannot load the modules of glibc that
//! answer them (NSS). The files come first. Whom they do not know is asked for with a program of the system.

use crate::loader::processes::getent;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// The name of a user on this node.
pub fn name(uid: u32) -> Option<String> {
    Some(String::from_utf8_lossy(&entry(uid)?.name).into_owned())
}

/// The home directory of a user on this node.
pub fn home(uid: u32) -> Option<PathBuf> {
    Some(PathBuf::from(OsStr::from_bytes(&entry(uid)?.home)))
}

/// The groups of a user: this one, which comes first, and those that the node has the user in.
pub fn groups(uid: u32, gid: u32) -> Vec<u32> {
    let of_files = || Some(member_of(&fs::read(GROUP).ok()?, &listed(uid)?.name));
    let of_node = || Some(numbers(&getent::ask("initgroups", OsStr::from_bytes(&asked(uid)?.name))?));
    let mut groups = vec![gid];
    for group in of_files().or_else(of_node).unwrap_or_default() {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// What is wanted of a line of passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    home: Vec<u8>,
}

fn entry(uid: u32) -> Option<Entry> {
    listed(uid).or_else(|| asked(uid))
}

/// The entry of a user in the file.
fn listed(uid: u32) -> Option<Entry> {
    entry_in(&fs::read(PASSWD).ok()?, uid)
}

/// The entry of a user who is not in the file, from wherever the node has its users.
fn asked(uid: u32) -> Option<Entry> {
    entry_in(&getent::ask("passwd", uid.to_string())?, uid)
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b':')
}

fn number(field: &[u8]) -> Option<u32> {
    str::from_utf8(field).ok()?.parse().ok()
}

/// The first entry with this number (passwd(5)): name:password:number:group:comment:home:shell.
fn entry_in(text: &[u8], uid: u32) -> Option<Entry> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = fields(line);
        let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
        (number(fields.nth(1)?)? == uid).then(|| Entry { name, home: fields.nth(2).unwrap_or_default().to_owned() })
    })
}

/// The groups with this member (group(5)): name:password:number:member,member.
fn member_of(text: &[u8], user: &[u8]) -> Vec<u32> {
    let group = |line: &[u8]| {
        let mut fields = fields(line);
        let number = number(fields.nth(2)?)?;
        fields.next()?.split(|byte| *byte == b',').any(|member| member == user).then_some(number)
    };
    text.split(|byte| *byte == b'\n').filter_map(group).collect()
}

/// The numbers after the name, as `getent initgroups` prints them.
fn numbers(text: &[u8]) -> Vec<u32> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1).filter_map(number).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use nix::unistd::{Gid, User, getgrouplist};
    use std::collections::BTreeSet;
    use std::ffi::CString;

    #[test]
    fn the_entry_with_the_number_is_taken() {
        let text =
            b"root:x:0:0:root:/root:/bin/sh\nbroken\n:x:7::\nada:x:1000:7:Ada, 1001:/home/a:/bin/sh\ndup:x:1000:7\n+::::::\n";
        let of = |uid| entry_in(text, uid).map(|e| [e.name, e.home].map(|part| String::from_utf8(part).unwrap()));
        assert_eq!(of(0).unwrap(), ["root", "/root"]);
        assert_eq!(of(1000).unwrap(), ["ada", "/home/a"]);
        for absent in [7, 1001, u32::MAX] {
            assert_eq!(of(absent), None);
        }
        assert_eq!(entry_in(b"", 0), None);
        assert_eq!(entry_in(b"caf\xe9:x:5:5", 5), Some(Entry { name: b"caf\xe9".to_vec(), home: Vec::new() }));
    }

    #[test]
    fn groups_are_those_with_the_user_as_a_member() {
        let text = b"root:x:0:\nbroken\nio:x:7:ada,bob\nadas:x:8:adam,bada\nrest:x:x:ada\nlast:x:9:bob,ada\n+:::";
        assert_eq!(member_of(text, b"ada"), [7, 9]);
        assert_eq!(member_of(text, b"eve"), Vec::<u32>::new());
        assert_eq!(numbers(b"ada                  7 9 4294967295 x\n"), [7, 9, u32::MAX]);
        assert_eq!(numbers(b""), Vec::<u32>::new());
    }

    /// Some that are listed, and one who is not.
    const USERS: [u32; 4] = [0, 1, 65_534, 64_321];

    #[test]
    fn users_are_what_libc_knows_of_them() {
        for uid in USERS {
            let libc = User::from_uid(uid.into()).unwrap();
            assert_eq!(name(uid), libc.as_ref().map(|user| user.name.clone()), "{uid}");
            assert_eq!(home(uid), libc.as_ref().map(|user| user.dir.clone()), "{uid}");
            assert_eq!(asked(uid), listed(uid), "{uid}");
        }
    }

    #[test]
    fn groups_are_what_libc_has() {
        let all = fs::read(PASSWD).unwrap();
        let listed = all.split(|byte| *byte == b'\n').filter_map(|line| number(fields(line).nth(2)?));
        for uid in listed.chain([64_321]) {
            let user = User::from_uid(uid.into()).unwrap();
            let gid = user.as_ref().map_or(7, |user| user.gid.as_raw());
            let libc = user.map_or_else(
                || vec![Gid::from_raw(gid)],
                |user| getgrouplist(&CString::new(user.name).unwrap(), user.gid).unwrap(),
            );
            let libc: BTreeSet<u32> = libc.into_iter().map(Gid::as_raw).collect();
            let ours = groups(uid, gid);
            assert_eq!((ours.first(), ours.iter().copied().collect()), (Some(&gid), libc), "{uid}");
        }
        // As where the file does not know the user.
        let root = numbers(&getent::ask("initgroups", "root").unwrap());
        assert_eq!(groups(0, 0).into_iter().collect::<BTreeSet<_>>(), root.into_iter().chain([0]).collect());
    }
}
