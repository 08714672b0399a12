//! The part of tests in virtual machines that the host does.

use crate::common::sql;

#[test]
#[ignore = "compares what the tests in virtual machines kept: `cargo xtask vm` runs it"]
fn datasets_agree_with_sql() {
    sql::compare_kept(std::env::var_os("IOTRACE_TEST_KEPT").unwrap().as_ref());
}
