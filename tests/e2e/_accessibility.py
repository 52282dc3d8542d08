# SPDX-License-Identifier: Apache-2.0
"""Rules of WCAG 2.2 AA that a script can check in a rendered page, and the keyboard's way."""
import json

# Colours as the browser paints them, and the contrast ratio of two.
COLOURS = r"""
  const pixel = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
    .getContext("2d", {willReadFrequently: true});
  const parse = color => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = color;
    pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = color => [.2126, .7152, .0722].reduce(
    (sum, share, i) => sum + share * linear(color[i] / 255), 0);
  const ratio = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + .05) / (low + .05);
  };
  const groundOf = e => {
    for (; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return parse("canvas");
  };
"""

# Each rule adds one line for each element that breaks it.
RULES = "(() => {" + COLOURS + r"""
  const found = [];
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const isShown = e => e.checkVisibility({visibilityProperty: true});
  const shown = selector => all(selector).filter(isShown);
  const of = e => e.outerHTML.replace(/\s+/g, " ").slice(0, 90);
  const broken = (rule, e) => found.push(rule + (e ? ": " + of(e) : ""));
  const byId = id => document.getElementById(id);
  const nameOf = e => (e.getAttribute("aria-label")
    || (e.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean)
         .map(id => byId(id) ? byId(id).textContent : "").join(" ")
    || (e.matches("a, button, summary, th, h1, h2, h3") ? e.textContent : "")
    || e.title || "").trim();

  // --- the document
  if (!document.documentElement.lang) broken("html has no lang");
  if (!document.title.trim()) broken("there is no title");
  const zoom = document.querySelector("meta[name=viewport]");
  if (!zoom || /user-scalable=no|maximum-scale/.test(zoom.content)) broken("no zoom");
  const ids = all("[id]").map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => broken("two have the id " + id));
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
    all(`[${attribute}]`).forEach(e => e.getAttribute(attribute).split(/\s+/).forEach(
      id => byId(id) || broken(`${attribute} names no element`, e)));
  }

  // --- landmarks and headings
  for (const landmark of ["main", "header", "footer"]) {
    const count = shown(landmark).filter(e => !e.parentNode.closest("main, section")).length;
    if (count !== 1) broken(`${count} landmarks ${landmark}`);
  }
  const land = "main, header, footer, nav, aside, script, style, noscript";
  [...document.body.children].filter(e => isShown(e) && !e.matches(land)).forEach(
    e => broken("outside of all landmarks", e));
  const regions = shown("[role=region], section[aria-label], section[aria-labelledby]");
  regions.forEach(e => nameOf(e) || broken("a region without a name", e));
  regions.filter((e, i) => regions.findIndex(other => nameOf(other) === nameOf(e)) !== i).forEach(
    e => broken("two regions of one name", e));
  let level = 0;
  shown("h1, h2, h3, h4, h5, h6").forEach(e => {
    const own = Number(e.nodeName[1]);
    if (own > level + 1) broken(`a heading of level ${own} follows one of level ${level}`, e);
    if (!e.textContent.trim()) broken("an empty heading", e);
    level = own;
  });
  if (shown("h1").length !== 1) broken(`${shown("h1").length} elements h1`);

  // --- controls, pictures, lists
  shown("a[href], button, input, select, textarea, [tabindex]").forEach(e => {
    if (!nameOf(e)) broken("a control without a name", e);
    if (Number(e.getAttribute("tabindex")) > 0) broken("a tabindex above 0", e);
  });
  shown("a, button").forEach(e => {
    const box = e.getBoundingClientRect(), inLine = getComputedStyle(e).display === "inline";
    if (!inLine && (box.width < 24 || box.height < 24)) broken("a target below 24 by 24 px", e);
  });
  shown("img, svg, [role=img]").forEach(e => {
    const hidden = e.closest("[aria-hidden=true]");
    if (!hidden && !nameOf(e) && !e.alt) broken("a picture without a name", e);
  });
  const parts = {"ul, ol": "li", "dl": "div, dt, dd"};
  for (const [list, part] of Object.entries(parts)) {
    shown(list).forEach(e => [...e.children].every(c => c.matches(part)) || broken("a list", e));
  }
  shown("li").forEach(e => e.parentNode.matches("ul, ol") || broken("an item without a list", e));
  shown("dt").forEach(e => e.nextElementSibling && e.nextElementSibling.matches("dd")
                           || broken("a dt without a dd", e));

  // --- tables
  shown("table").forEach(e => {
    if (!nameOf(e) && !e.caption) broken("a table without a name", e);
    all("th", e).forEach(th => /^(col|row)$/.test(th.scope) || broken("th without scope", th));
    all("thead th", e).forEach(th => th.scope === "col" || broken("th in thead without col", th));
    all("tbody tr", e).forEach(tr => {
      if (!tr.querySelector("th[scope=row]")) broken("a row without a header", tr);
      if (tr.cells.length !== e.tHead.rows[0].cells.length) broken("a row of another length", tr);
    });
  });

  // --- what changes
  if (!document.querySelector("[role=status], [role=alert], [aria-live]")) broken("no live region");
  shown("[role=progressbar]").forEach(e => {
    const [least, now, most] = ["min", "now", "max"].map(w => e.getAttribute("aria-value" + w));
    if (!nameOf(e)) broken("a bar without a name", e);
    if (least === null || most === null) broken("a bar without limits", e);
    const isIn = Number(least) <= Number(now) && Number(now) <= Number(most);
    if (now !== null && !isIn) broken("a bar beyond its limits", e);
    if (!e.getAttribute("aria-valuetext")) broken("a bar without aria-valuetext", e);
  });
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    document.getAnimations().forEach(a => broken("an animation", a.effect.target));
    shown("*").forEach(e => parseFloat(getComputedStyle(e).transitionDuration) > 0
                            && broken("a transition", e));
  }

  // --- nothing is cut
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) broken("the page scrolls sideways");
  shown("body *").forEach(e => {
    const style = getComputedStyle(e), scrolls = /auto|scroll/.test(style.overflowX);
    const inside = e.closest("svg") || e.parentNode.closest("[role=progressbar]");
    if (inside || style.display === "inline") return;
    if (e.scrollWidth > e.clientWidth + 1 && !scrolls) broken("wider than its box", e);
    if (scrolls && e.scrollWidth > e.clientWidth && e.tabIndex < 0) {
      broken("a scroll box that no key reaches", e);
    }
    let box = e.parentNode;
    while (box !== document.body && !/auto|scroll/.test(getComputedStyle(box).overflowX)) {
      box = box.parentNode;
    }
    if (box === document.body && e.getBoundingClientRect().right > width + 1) broken("cut", e);
  });

  // --- contrast: 4.5 for text, 3 for large text and for parts that carry meaning
  const pairs = {};
  const check = (what, color, ground, least, e) => {
    const got = ratio(color, ground), rgb = c => `rgb(${c.slice(0, 3)})`;
    pairs[`${what}, ${rgb(color)} on ${rgb(ground)}`] = Math.round(got * 100) / 100;
    if (got < least) broken(`contrast ${got.toFixed(2)}, below ${least}`, e);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, style = getComputedStyle(e);
    const isText = walker.currentNode.data.trim() && !e.closest("script, style, noscript");
    if (!isText || !isShown(e)) continue;
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const color = parse(e.closest("svg") ? style.fill : style.color);
    check("text", color, groundOf(e), isLarge ? 3 : 4.5, e);
  }
  shown("button").forEach(e => check("the edge of a button",
    parse(getComputedStyle(e).borderTopColor), groundOf(e.parentNode), 3, e));
  shown(".curve, svg[aria-hidden] path").forEach(
    e => check("a line", parse(getComputedStyle(e).stroke), groundOf(e), 3, e));
  shown(".bar").forEach(e => {
    const style = getComputedStyle(e), track = parse(style.backgroundColor);
    check("the edge of a bar", parse(style.borderTopColor), groundOf(e.parentNode), 3, e);
    const inner = parse(getComputedStyle(e.firstElementChild).backgroundColor);
    if (inner[3] === 255) check("a bar", inner, track, 3, e);
  });
  return {found, pairs};
})()"""

FOCUSED = "(() => {" + COLOURS + r"""
  const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
  const contrast = ratio(parse(style.outlineColor), groundOf(e.parentNode));
  return e === document.body ? null : {
    what: (e.id || e.getAttribute("aria-label") || e.textContent).trim(),
    hasRing: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    hasContrast: contrast >= 3, isInView: box.bottom > 0 && box.top < innerHeight};
})()"""
FOCUSABLE = """[...document.querySelectorAll("a[href], button, [tabindex='0']")].filter(
  e => e.checkVisibility()).length"""


def checked(browser):
    """(problems, {pair of colours: its contrast}) of the page that the browser shows."""
    got = browser.ask(RULES)
    return got["found"], got["pairs"]


def by_keyboard(browser):
    """Problems of reaching each control with the Tab key."""
    browser.ask("document.body.tabIndex = -1; document.body.focus();"
                "document.body.removeAttribute('tabindex')")   # the way begins there
    count, reached, problems = browser.ask(FOCUSABLE), [], []
    for _ in range(count):
        browser.press("Tab")
        at = browser.ask(FOCUSED)
        if at is None:
            break
        reached.append(at["what"])
        problems += [f"the focus: {what} is false: {at['what']}"
                     for what in ("hasRing", "hasContrast", "isInView") if not at[what]]
    if len(reached) != count:
        problems.append(f"{len(reached)} of {count} controls are reached: {json.dumps(reached)}")
    return problems
