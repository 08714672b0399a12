//! Operations of NFS: the kernel's names of them (`fs/nfs/nfs3xdr.c`, `fs/nfs/nfs4xdr.c`; `/proc/self/mountstats` has them) in
//! small letters.

const WORDS: &[&str] = &[
    "access",
    "allocate",
    "bind_conn_to_session",
    "clone",
    "close",
    "commit",
    "copy",
    "copy_notify",
    "create",
    "create_session",
    "deallocate",
    "delegreturn",
    "destroy_clientid",
    "destroy_session",
    "exchange_id",
    "free_stateid",
    "fs_locations",
    "fsid_present",
    "fsinfo",
    "fsstat",
    "get_lease_time",
    "getacl",
    "getattr",
    "getdeviceinfo",
    "getdevicelist",
    "getxattr",
    "layoutcommit",
    "layouterror",
    "layoutget",
    "layoutreturn",
    "layoutstats",
    "link",
    "listxattrs",
    "lock",
    "lockt",
    "locku",
    "lookup",
    "lookup_root",
    "lookupp",
    "mkdir",
    "mknod",
    "null",
    "offload_cancel",
    "offload_status",
    "open",
    "open_confirm",
    "open_downgrade",
    "open_noattr",
    "pathconf",
    "read",
    "read_plus",
    "readdir",
    "readdirplus",
    "readlink",
    "reclaim_complete",
    "release_lockowner",
    "remove",
    "removexattr",
    "rename",
    "renew",
    "rmdir",
    "secinfo",
    "secinfo_no_name",
    "seek",
    "sequence",
    "server_caps",
    "setacl",
    "setattr",
    "setclientid",
    "setclientid_confirm",
    "setxattr",
    "statfs",
    "symlink",
    "test_stateid",
    "write",
    "zero_range",
];

/// The word for an operation, by the kernel's name of it, which a NUL ends; `other`: one that is not known here.
pub fn word(name: &[u8]) -> &'static str {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default().to_ascii_lowercase();
    let found = WORDS.binary_search_by_key(&name.as_slice(), |word| word.as_bytes());
    found.ok().and_then(|at| WORDS.get(at)).map_or("other", |word| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_the_kernel_s_names() {
        assert!(WORDS.is_sorted());
        for known in WORDS {
            // What a record has room for.
            assert!(known.len() < 24 && word(known.to_uppercase().as_bytes()) == *known, "{known}");
        }
        assert_eq!([word(b"WRITE\0\0\0"), word(b"WRITES\0"), word(b"")], ["write", "other", "other"]);
    }
}
