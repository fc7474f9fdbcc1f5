//! Tables of the laboratory: tab-separated text with comments and a line of column names.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The rows of `text`, each with one cell for each of `columns`.
pub fn rows(text: &str, columns: &[&str]) -> Result<Vec<Vec<String>>> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    let (_, head) = lines.next().context("an empty table")?;
    let found: Vec<&str> = head.split('\t').collect();
    ensure!(
        found == columns,
        "columns {found:?}, expected {columns:?}, separated by tabs"
    );
    lines
        .map(|(at, line)| {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let count = cells.len();
            ensure!(
                count == columns.len(),
                "line {}: {count} cells, {} expected, separated by tabs",
                at + 1,
                columns.len()
            );
            Ok(cells)
        })
        .collect()
}

/// The rows of the file `path`.
pub fn read(path: &Path, columns: &[&str]) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    rows(&text, columns).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[[&str; 2]], &str>) {
        let found = rows(text, &["a", "b"]).map_err(|error| error.to_string());
        let expect = expect.map_err(str::to_owned).map(|rows| {
            let owned = |row: &[&str; 2]| row.iter().map(|cell| (*cell).to_owned()).collect();
            rows.iter().map(owned).collect::<Vec<Vec<String>>>()
        });
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn a_row_has_a_cell_for_each_column_and_comments_are_left_out() {
        check(
            "# why\na\tb\n\n1\t2\n# more\n3\t4\n",
            Ok(&[["1", "2"], ["3", "4"]]),
        );
        check("a\tb\n", Ok(&[]));
        check("# only\n", Err("an empty table"));
    }

    #[test]
    fn a_row_with_other_cells_is_refused_with_its_line() {
        let missing = "line 3: 1 cells, 2 expected, separated by tabs";
        check("a\tb\n1\t2\n3\n", Err(missing));
        let head = r#"columns ["a", "c"], expected ["a", "b"], separated by tabs"#;
        check("a\tc\n", Err(head));
    }
}
