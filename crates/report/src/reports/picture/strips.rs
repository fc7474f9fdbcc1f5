//! A strip of time for each resource, as strong as it was busy.

use views::reports::{Cell, Table};

use super::bars::cut;
use super::canvas::{Canvas, WIDTH};
use super::plot::axis;

const LEFT: f64 = 180.0;
const LINE: f64 = 20.0;
/// More strips than a page shows help nobody.
const STRIPS_MAX: usize = 64;

pub(super) fn draw(table: &Table, canvas: &mut Canvas) {
    let whole_ns = (table.end_ns - table.begin_ns).max(1) as f64;
    let x = |ns: i64| LEFT + (WIDTH - LEFT) * (ns - table.begin_ns) as f64 / whole_ns;
    let mut names: Vec<&str> = Vec::new();
    let [of, range, share] = table.class.columns else {
        return;
    };
    for cells in table.cells([of.key, range.key, share.key]) {
        let [
            Cell::Text(name),
            Cell::Range(begin_ns, end_ns),
            Cell::Ratio(busy),
        ] = cells
        else {
            continue;
        };
        if names.last() != Some(&name.as_str()) {
            if names.len() >= STRIPS_MAX {
                break;
            }
            names.push(name);
            let baseline = names.len() as f64 * LINE - 5.0;
            canvas.text((LEFT - 6.0, baseline), "end", &cut(name, 26));
        }
        let top = (names.len() - 1) as f64 * LINE;
        let size = ((x(*end_ns) - x(*begin_ns)).max(0.2), LINE - 3.0);
        let hint = format!("{name}: {:.1} %", busy * 100.0);
        canvas.shade((x(*begin_ns), top), size, *busy, &hint);
    }
    axis(table, names.len() as f64 * LINE, LEFT, canvas);
}
