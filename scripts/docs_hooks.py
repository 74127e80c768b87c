"""Pages that the site takes from the repository's root, with their links as seen from docs/."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}


def on_files(files, config):
    for source, page in PAGES.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text())
        for other, name in PAGES.items():
            text = text.replace(f"]({other}", f"]({name}")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Pages of docs/ link to those of the root as GitHub shows them: `../README.md`."""
    for other, name in PAGES.items():
        markdown = markdown.replace(f"](../../{other}", f"](../{name}").replace(f"](../{other}", f"]({name}")
    return markdown
