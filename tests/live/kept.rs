//! The part of live tests that needs no trace, and is done beside them or after.

use crate::common::sql;

#[test]
#[ignore = "compares what live tests kept: `cargo xtask test` and `cargo xtask vm` run it"]
fn datasets_agree_with_sql() {
    sql::compare_kept(std::env::var_os("IOTRACE_TEST_KEPT").unwrap().as_ref());
}
