//! The user who called sudo.

use nix::unistd::Uid;

/// The user who called sudo, if we run under it as root: (uid, gid).
pub fn invoking_user() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    (Uid::effective().is_root()).then_some(()).and(Some((id("SUDO_UID")?, id("SUDO_GID")?)))
}
