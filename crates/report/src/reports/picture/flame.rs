//! A flame graph: callers below, callees above, as wide as the time that they took.

use std::collections::BTreeMap;

use views::reports::{Cell, Table};

use super::bars::cut;
use super::canvas::{Canvas, WIDTH};
use super::scale::number;

const LINE: f64 = 17.0;
/// What is narrower is not drawn.
const WIDTH_MIN: f64 = 0.3;
const LETTER: f64 = 6.5;

/// A function with what it called.
#[derive(Default)]
struct Node<'a> {
    us: f64,
    children: BTreeMap<&'a str, Node<'a>>,
}

impl Node<'_> {
    fn depth(&self) -> usize {
        1 + self.children.values().map(Node::depth).max().unwrap_or(0)
    }
}

pub(super) fn draw(table: &Table, canvas: &mut Canvas) {
    let mut root = Node::default();
    for [stack, own] in table.cells(["stack", "self"]) {
        let (Cell::Text(stack), Some(us)) = (stack, number(own)) else {
            continue;
        };
        root.us += us;
        let mut node = &mut root;
        for name in stack.split(';') {
            node = node.children.entry(name).or_default();
            node.us += us;
        }
    }
    let bottom = root.depth() as f64 * LINE;
    canvas.reach(bottom + LINE);
    let scale = if root.us > 0.0 { WIDTH / root.us } else { 0.0 };
    draw_node("all", &root, 0.0, bottom, scale, canvas);
}

fn draw_node(name: &str, node: &Node<'_>, left: f64, top: f64, scale: f64, canvas: &mut Canvas) {
    let width = node.us * scale;
    if width < WIDTH_MIN {
        return;
    }
    canvas.rect(
        (left, top),
        (width, LINE - 1.0),
        "warm",
        &format!("{name}: {:.3} µs", node.us),
    );
    let letters = (width / LETTER) as usize;
    if letters >= 3 {
        canvas.text((left + 3.0, top + 12.0), "in", &cut(name, letters));
    }
    let mut left = left;
    for (name, child) in &node.children {
        draw_node(name, child, left, top - LINE, scale, canvas);
        left += child.us * scale;
    }
}
