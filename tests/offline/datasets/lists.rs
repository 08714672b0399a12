//! Lists of the program that also stand in other files. `INSTA_UPDATE=always` writes them there, as it writes snapshots.

use iotrace_bpf::vocabulary::LAYERS;

/// Between `before` and `after` `file` has `wanted`.
fn stands(file: &str, before: &str, wanted: &str, after: &str) {
    let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(before).unwrap_or_else(|| panic!("{file} lacks: {before}"));
    let (found, tail) = rest.split_once(after).unwrap_or_else(|| panic!("{file} lacks: {after}"));
    if found == wanted {
        return;
    }
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    assert!(update, "{file} has {found:?} in the place of {wanted:?}; INSTA_UPDATE=always replaces it");
    std::fs::write(path, [head, before, wanted, after, tail].concat()).unwrap();
}

#[test]
fn views_order_layers_as_the_program_does() {
    let names = LAYERS.map(|layer| format!("'{layer}'")).join(", ");
    stands("src/export/views.sql", "layer_rank(layer) AS list_position(\n  [", &names, "], layer)");
}

#[test]
fn the_glossary_has_the_layers_in_their_order() {
    let names = LAYERS.map(|layer| format!("`{layer}`")).join(", ");
    stands("docs/glossary.md", "From top to bottom:\n  ", &names, ".\n");
}
