//! comove
fn main() {}
