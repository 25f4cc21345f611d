// Run in a page by browser.py: returns what is wrong with how it looks, one line per fault.
() => {
  const faults = [], seen = new Map();
  const fault = (kind, element, detail) => {  // some of a kind are enough to find the rest
    const count = seen.get(kind) || 0;
    seen.set(kind, count + 1);
    const tag = element.tagName.toLowerCase(), words = (element.textContent || "").trim().slice(0, 40);
    if (count < 4) faults.push(`${kind}: <${tag}> "${words}" ${detail}`);
  };
  document.querySelectorAll("details").forEach(details => { details.open = true; });

  const root = document.documentElement;
  const scrolling = ["auto", "scroll", "hidden", "clip"];
  const scrolls = element => scrolling.includes(getComputedStyle(element).overflowX);
  const inScroller = element => {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement)
      if (scrolls(up)) return true;
    return false;
  };
  if (root.scrollWidth > root.clientWidth)
    for (const element of document.body.querySelectorAll("*")) {
      const beyond = element.getBoundingClientRect().right - root.clientWidth;
      if (beyond > 1 && !inScroller(element))
        fault("wider than the screen", element, `by ${Math.round(beyond)} px`);
    }

  if (root.clientWidth >= 1280)  // only a phone's navigation scrolls
    for (const link of document.querySelectorAll("nav a")) {
      const beyond = link.getBoundingClientRect().right - root.clientWidth;
      if (beyond > 1) fault("link beyond the screen", link, `by ${Math.round(beyond)} px`);
    }
  for (const head of document.querySelectorAll(".scroll > table > thead"))
    if (getComputedStyle(head).position !== "sticky") fault("head that scrolls away", head, "");
  for (const row of document.querySelectorAll("tbody tr")) {
    const { width, height } = row.getBoundingClientRect();
    if (width > 1.6 * 1280) fault("row wider than any screen", row, `${Math.round(width)} px`);
    if (height > root.clientHeight) fault("row taller than the screen", row, `${Math.round(height)} px`);
  }

  const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = pixel.getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const rgba = text => {  // any CSS colour as [r, g, b, alpha], 0 to 255 and 0 to 1
    if (!colours.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      colours.set(text, [r, g, b, a / 255]);
    }
    return colours.get(text);
  };
  const over = (top, below, alpha) => below.map((part, i) => top[i] * alpha + part * (1 - alpha));
  const channel = part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const opacity = element => {
    let product = 1;
    for (let up = element; up; up = up.parentElement) product *= parseFloat(getComputedStyle(up).opacity);
    return product;
  };
  const canvas = rgba(getComputedStyle(document.body).backgroundColor)[3] ? [0, 0, 0] : [255, 255, 255];
  const background = element => {  // what lies under an element's text, with every translucent layer
    const layers = [];
    for (let up = element; up; up = up.parentElement)
      layers.unshift(rgba(getComputedStyle(up).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below, layer[3]), canvas);
  };
  const shapesOf = new Map();
  const behind = text => {  // the same for text of an SVG: the shapes drawn before it at its middle
    const svg = text.ownerSVGElement, box = text.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (!shapesOf.has(svg)) {
      const drawn = [...svg.querySelectorAll("rect, circle, ellipse, polygon, path")];
      const shapes = drawn.filter(shape => !shape.closest("defs, clipPath"));
      shapesOf.set(svg, shapes.map(shape => [shape, shape.getBoundingClientRect()]));
    }
    let below = background(svg);
    for (const [shape, area] of shapesOf.get(svg)) {
      if (x < area.left || x > area.right || y < area.top || y > area.bottom) continue;
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      const style = getComputedStyle(shape);
      const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
      if (style.fill === "none" || !shape.isPointInFill(point)) continue;
      const fill = rgba(style.fill);
      below = over(fill, below, fill[3] * parseFloat(style.fillOpacity) * opacity(shape));
    }
    return below;
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const elements = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.textContent.trim()) elements.add(node.parentElement);
  for (const element of elements) {
    const area = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!area.width || style.visibility === "hidden") continue;
    const svg = element.ownerSVGElement;
    const matrix = svg && element.getScreenCTM();
    const scale = matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < LEAST_SIZE - 0.05) fault("tiny text", element, `${size.toFixed(1)} px`);
    const ink = rgba(svg ? style.fill : style.color), below = svg ? behind(element) : background(element);
    const ratio = contrast(over(ink, below, ink[3] * opacity(element)), below);
    if (ratio < LEAST_CONTRAST) fault("low contrast", element, `${ratio.toFixed(2)}:1`);
  }

  const ids = new Set();
  for (const element of document.querySelectorAll("[id]")) {
    if (ids.has(element.id)) fault("id used twice", element, `#${element.id}`);
    ids.add(element.id);
  }
  for (const link of document.querySelectorAll("a[href^='#']")) {
    const id = decodeURIComponent(link.getAttribute("href").slice(1));
    if (!ids.has(id)) fault("link to nowhere", link, `#${id}`);
  }
  for (const picture of document.querySelectorAll("img, svg")) {
    if (picture.ownerSVGElement) continue;
    const area = picture.getBoundingClientRect();
    const empty = picture.tagName === "IMG" && !(picture.complete && picture.naturalWidth);
    if (empty || !area.width || !area.height)
      fault("empty picture", picture, `${area.width} x ${area.height} px`);
  }
  return faults;
}
