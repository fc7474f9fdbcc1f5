//! What the machine that runs the laboratory must have.

use super::image;

/// Programs, and the Debian packages that bring them.
const PROGRAMS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("depmod", "kmod"),
    ("dpkg", "dpkg"),
    ("apt-cache", "apt"),
    ("xz", "xz-utils"),
    ("make", "make"),
    ("gcc-12", "gcc-12"),
];

/// What is missing here, and the way out; none when guests can be run.
pub fn lack() -> Option<String> {
    lack_among(PROGRAMS, |program| image::in_path(program).is_ok())
}

fn lack_among(programs: &[(&str, &str)], has: impl Fn(&str) -> bool) -> Option<String> {
    let missing = programs.iter().filter(|(program, _)| !has(program));
    let (programs, packages): (Vec<&str>, Vec<&str>) = missing.copied().unzip();
    (!programs.is_empty()).then(|| {
        format!(
            "no {} in PATH; fix: apt-get install {}",
            programs.join(", "),
            packages.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_packages() {
        let programs = &[("qemu", "qemu-system"), ("xz", "xz-utils")];
        assert_eq!(lack_among(programs, |_| true), None);
        assert_eq!(
            lack_among(programs, |program| program == "xz").as_deref(),
            Some("no qemu in PATH; fix: apt-get install qemu-system")
        );
        assert_eq!(
            lack_among(programs, |_| false).as_deref(),
            Some("no qemu, xz in PATH; fix: apt-get install qemu-system xz-utils")
        );
    }
}
