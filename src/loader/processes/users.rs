//! Names of users, without `getpwuid`: a static program cannot load the modules of glibc that answer it (NSS).

use std::fs;
use std::process::{Command, Stdio};

const PASSWD: &str = "/etc/passwd";
/// Asks what the node is configured for, a directory service for example. Part of every C library's package.
const GETENT: &str = "getent";

/// The name of a user on this node.
pub fn name(uid: u32) -> Option<String> {
    let listed = fs::read(PASSWD).ok().and_then(|text| name_in(&text, uid));
    listed.or_else(|| name_in(&ask(uid)?, uid))
}

/// The entry of a user who is not in the file, from wherever the node has its users.
fn ask(uid: u32) -> Option<Vec<u8>> {
    let mut getent = Command::new(GETENT);
    getent.args(["passwd", &uid.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
    Some(getent.output().ok()?.stdout)
}

/// The name in the first entry with this number (passwd(5)): name:password:number:...
fn name_in(text: &[u8], uid: u32) -> Option<String> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
        (number == uid).then(|| String::from_utf8_lossy(name).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_with_the_number_is_taken() {
        let text =
            b"root:x:0:0:root:/root:/bin/sh\nbroken\n:x:7::\nada:x:1000:7:Ada, 1001:/:/bin/sh\ndup:x:1000:7\n+::::::\n";
        assert_eq!(name_in(text, 0).as_deref(), Some("root"));
        assert_eq!(name_in(text, 1000).as_deref(), Some("ada"));
        for absent in [7, 1001, u32::MAX] {
            assert_eq!(name_in(text, absent), None);
        }
        assert_eq!(name_in(b"", 0), None);
        assert_eq!(name_in(b"caf\xe9:x:5:5", 5).as_deref(), Some("caf\u{fffd}"));
    }

    #[test]
    fn users_have_the_names_that_libc_has() {
        for uid in [0, 1, 65_534, 64_321] {
            let libc = nix::unistd::User::from_uid(uid.into()).unwrap().map(|user| user.name);
            assert_eq!(name(uid), libc, "{uid}");
            assert_eq!(ask(uid).and_then(|text| name_in(&text, uid)), libc, "{uid}");
        }
    }
}
