//! An SVG that is drawn from top to bottom.

use std::fmt::Write;

use crate::xml::escaped;

/// How wide all pictures are, in their own units.
pub(crate) const WIDTH: f64 = 960.0;

/// A drawing.
pub(crate) struct Canvas {
    title: String,
    body: String,
    height: f64,
}

impl Canvas {
    pub fn new(title: &str) -> Canvas {
        Canvas {
            title: title.to_owned(),
            body: String::new(),
            height: 0.0,
        }
    }

    /// Makes room down to `bottom`.
    pub fn reach(&mut self, bottom: f64) {
        self.height = self.height.max(bottom);
    }

    /// A filled box, with what a pointer over it shows.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str, hint: &str) {
        self.reach(at.1 + size.1);
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            short(at.0),
            short(at.1),
            short(size.0),
            short(size.1)
        );
        match hint {
            "" => self.body.push_str("/>\n"),
            hint => {
                let _ = writeln!(self.body, "><title>{}</title></rect>", escaped(hint));
            }
        }
    }

    /// The same box as strong as `share`, from 0 to 1.
    pub fn shade(&mut self, at: (f64, f64), size: (f64, f64), share: f64, hint: &str) {
        let opacity = short(share.clamp(0.05, 1.0));
        let _ = write!(self.body, "<g opacity=\"{opacity}\">");
        self.rect(at, size, "bar", hint);
        self.body.push_str("</g>\n");
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        );
    }

    /// A point, with what a pointer over it shows.
    pub fn point(&mut self, at: (f64, f64), hint: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"point\" cx=\"{}\" cy=\"{}\" r=\"2\"><title>{}</title></circle>",
            short(at.0),
            short(at.1),
            escaped(hint)
        );
    }

    /// Text whose baseline begins at `at`, or ends there for the class `end`.
    pub fn text(&mut self, at: (f64, f64), class: &str, text: &str) {
        self.reach(at.1 + 6.0);
        let (x, y) = (short(at.0), short(at.1));
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        );
    }

    /// The whole element, with its own style, so that it stands alone too.
    pub fn finish(self) -> String {
        let (width, height) = (short(WIDTH), short(self.height + 4.0));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<style>{STYLE}\
             </style>\n{}</svg>\n",
            escaped(&self.title),
            self.body
        )
    }
}

/// Grey text and lines read on light and on dark paper.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#808080}\
text.end{text-anchor:end}\
text.in{fill:#1b1b1b;font-size:11px}\
.bar{fill:#3f7fbf}.warm{fill:#e0913a;stroke:#fff;stroke-width:.5}\
.axis{stroke:#808080;stroke-width:1}.grid{stroke:#808080;stroke-width:.3}\
.point{fill:#c0392b}.stem{stroke:#c0392b;stroke-width:1;opacity:.5}";

/// A coordinate with as many digits as a screen can show.
fn short(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
