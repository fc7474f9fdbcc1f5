#!/usr/bin/env python3
"""Builds the book of docs/ with mdBook, tests the Rust in it, and checks every link of its pages.

usage: book.py OUTPUT

Pages link to others outside of docs/ (README.md, probe/README.md, a program). So the book is built
from a copy that has the repository's own layout, with all that is linked. Links to folders become
words.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
FIRST = "README.md"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def fail(what, found, fix):
    sys.exit(f"error: {what}\n  found: {found}\n  fix:  {fix}")


def tracked(pattern):
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    command.append("--")
    listed = subprocess.run([*command, pattern], check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def copy(name, to):
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(ROOT / name, target)


def without_dead_links(name, to):
    """Takes the links out of a copied page that a book has no page for: folders, its contents."""
    page = to / name

    def words(link):
        target = (ROOT / name).parent.joinpath(link.group(2))
        is_page = not target.is_dir() and target.name != "SUMMARY.md"
        return link.group(0) if is_page else link.group(1)

    page.write_text(re.sub(r"\[([^\]]+)\]\(([^)#\s]+)\)", words, page.read_text()))


def without_guesses(page):
    """Calls blocks of no language text: mdBook would take them for Rust."""
    parts = re.split(r"^```", page.read_text(), flags=re.MULTILINE)
    # What stands between fences is every second part.
    for place in range(1, len(parts), 2):
        if parts[place].startswith("\n"):
            parts[place] = "text" + parts[place]
    page.write_text("```".join(parts))


def linked(name):
    """The files that a page links to, from the repository's root; folders are left out."""
    for link, _ in LINK.findall((ROOT / name).read_text()):
        path = (ROOT / name).parent.joinpath(unquote(link)).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            yield str(path.relative_to(ROOT))


def stage(to):
    """Copies docs/ and all that is linked from there; the contents name every page of it."""
    wanted = tracked("docs")
    wanted.append(FIRST)
    pages = [name for name in wanted if name.endswith(".md")]
    outside = []
    for page in pages:
        for name in linked(page):
            if name not in wanted:
                wanted.append(name)
                if name.endswith(".md"):
                    pages.append(name)
                    outside.append(name)
    for name in wanted:
        copy(name, to)
        if name.endswith(".md"):
            without_dead_links(name, to)
            without_guesses(to / name)
    # The first page is the book's own address: it has to be one of the root, or its links break.
    contents = (ROOT / "docs/SUMMARY.md").read_text()
    contents = LINK.sub(lambda link: f"](docs/{link.group(1)})", contents)
    contents = contents.replace("\n\n", f"\n\n[rtscope]({FIRST})\n\n", 1)
    titles = {name: (ROOT / name).read_text().splitlines()[0].lstrip("# ") for name in outside}
    contents += "\n# Outside of this book\n\n"
    others = [name for name in sorted(outside) if name != FIRST]
    contents += "".join(f"- [{titles[name]}]({name})\n" for name in others)
    (to / "SUMMARY.md").write_text(contents)
    (to / "docs/SUMMARY.md").unlink()
    shutil.move(to / "docs/book.toml", to / "book.toml")


class Page(HTMLParser):
    """The links of a page, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src") and tag != "base" and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.anchors.add(value)


def broken(book):
    """The links of the built pages that lead nowhere."""
    # The page of all pages for the printer has every link anew, and 404's are from the site's root.
    names = [p for p in book.rglob("*.html") if p.name not in ("print.html", "404.html")]
    pages = {path.resolve(): Page(path.read_text()) for path in names}
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html" if (target / "index.html").exists() else target
            if not target.exists():
                yield f"{path.relative_to(book)}: {link}"
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    yield f"{path.relative_to(book)}: {link} (no such heading)"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    output = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder))
        shutil.rmtree(output, ignore_errors=True)
        subprocess.run(["mdbook", "test", folder], check=True)
        subprocess.run(["mdbook", "build", folder, "--dest-dir", str(output)], check=True)
    # mdBook calls a README's page index, and leaves the links to it as they are.
    for page in output.rglob("index.html"):
        shutil.copy2(page, page.with_name("README.html"))
    lost = sorted(set(broken(output.resolve())))
    if lost:
        fail("links of the book lead nowhere", "\n         ".join(lost), "mend them in docs/")
    pages = len(list(output.rglob("*.html")))
    print(f"{pages} pages in {output}, every link of theirs leads somewhere")


main()
