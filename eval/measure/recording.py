# SPDX-License-Identifier: Apache-2.0
"""Keeps what a program prints, and draws it as a terminal in an SVG picture.

The picture shows all lines first, also in a viewer that does not animate. After POSTER seconds each
line appears again when it was printed, with long pauses cut short.
"""
import html
import re
import sys
import time

COLUMNS, FONT, LINE, MARGIN = 110, 13, 18, 16
GLYPH = 0.602 * FONT    # the width of a character of most monospaced fonts
PAUSE_MOST, POSTER = 0.8, 3   # seconds: between two lines; of the whole picture
# (what a line holds, its class): the first one that is found.
STYLES = ((r"^==", "head"), (r"^\$", "command"), (r"leads: kill -9", "dies"), (r"^\s*NOT ", "dies"),
          (r"^\s*ok ", "good"), (r"leads now", "good"), (r"", "plain"))
COLOURS = {"head": "#7dcfff", "command": "#e0af68", "dies": "#ff6b6b", "good": "#9ece6a",
           "plain": "#c0caf5"}


class Recording:
    """Stands for standard output while it is entered."""

    def __init__(self, command):
        self.lines, self.part, self.began = [(0.0, f"$ {command}")], "", time.monotonic()

    def __enter__(self):
        self.real, sys.stdout = sys.stdout, self
        return self

    def __exit__(self, *_):
        sys.stdout = self.real

    def write(self, text):
        self.real.write(text)
        *whole, self.part = (self.part + text).split("\n")
        self.lines += [(time.monotonic() - self.began, line) for line in whole]

    def flush(self):
        self.real.flush()

    def svg(self, title):
        """A line that is too long is broken."""
        shown, at, before = [], 0.5, 0.0
        for when, line in self.lines:
            at += min(when - before, PAUSE_MOST)
            before = when
            style = next(name for pattern, name in STYLES if re.search(pattern, line))
            shown += [(at, line[n:n + COLUMNS], style)
                      for n in range(0, max(len(line), 1), COLUMNS)]
        width = COLUMNS * GLYPH + 2 * MARGIN
        height = len(shown) * LINE + 3 * MARGIN + 20
        rows = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                f'width="{width:.0f}" height="{height:.0f}">',
                f"<title>{html.escape(title)}</title>",
                "<style>text { font: %dpx ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, "
                "monospace; white-space: pre } .head, .command { font-weight: bold }%s</style>"
                % (FONT, "".join(f" .{name} {{ fill: {c} }}" for name, c in COLOURS.items())),
                '<rect width="100%" height="100%" rx="8" fill="#1a1b26"/>',
                *(f'<circle cx="{MARGIN + 4 + 18 * n}" cy="{MARGIN}" r="5" fill="{colour}"/>'
                  for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")))]
        for row, (at, line, style) in enumerate(shown):
            if line:
                rows.append(f'<text class="{style}" x="{MARGIN}" xml:space="preserve" '
                            f'y="{2 * MARGIN + 20 + row * LINE}">{html.escape(line)}'
                            f'<set attributeName="visibility" to="hidden" begin="{POSTER}s" '
                            f'dur="{at:.2f}s"/></text>')
        return "\n".join([*rows, "</svg>"]) + "\n"
