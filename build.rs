//! Has the estate embedded anew when a file is added to it: rust-embed notices only the files that it knew before.

fn main() {
    println!("cargo::rerun-if-changed=fixtures/estate");
}
