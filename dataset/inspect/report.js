// SPDX-License-Identifier: Apache-2.0
//
// Draws the page of `inspect_dataset report` from the JSON in the element #data. All texts of the
// dataset become text nodes or attribute values, never HTML.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const sides = data.sides;
  const two = sides.length > 1;
  const grouped = new Intl.NumberFormat("en-US");
  const number = (value) => (value === null || value === undefined ? "unknown" : grouped.format(value));
  const decimal = (value, digits) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const percent = (part, whole) => (whole === 0 ? "0 %" : decimal((100 * part) / whole, 2) + " %");
  const isKnown = (value) => value !== null && value !== undefined;

  // A byte that is not UTF-8 is a lone surrogate in the JSON.
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;
  const lone = /[\ud800-\udfff]/u;
  function pieces(text) {
    const parts = [];
    let plain = "";
    const note = (what) => {
      if (plain) parts.push(plain);
      plain = "";
      parts.push(make("i", {}, what));
    };
    for (const character of text) {
      const code = character.codePointAt(0);
      if (character === "\n") { note("\u21b5"); plain += "\n"; }
      else if (character === "\t") { note("\u21e5"); plain += "\t"; }
      else if (lone.test(character)) note("\\x" + (code & 0xff).toString(16).padStart(2, "0"));
      else if (hidden.test(character)) note("\\u{" + code.toString(16) + "}");
      else plain += character;
    }
    if (plain) parts.push(plain);
    return parts;
  }
  const quoted = (text) => "\u201c" + pieces(text).map((part) => (typeof part === "string" ? part.replace(/[\n\t]/g, "") : part.textContent)).join("") + "\u201d";

  const svgNames = new Set(["svg", "g", "rect", "line", "polyline", "text", "circle", "title"]);
  function make(name, attributes, ...children) {
    const element = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name)
                                       : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || !isKnown(value)) continue;
      if (key === "width%") element.style.width = value + "%";
      else element.setAttribute(key, value);
    }
    for (const child of children.flat(2)) if (isKnown(child)) element.append(child);
    return element;
  }

  const page = document.getElementById("page");
  function section(title, about, ...children) {
    const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
    const made = make("section", { id, "aria-labelledby": id + "-title" }, make("h2", { id: id + "-title" }, title),
      about ? make("p", { class: "soft" }, about) : null, ...children);
    page.append(made);
    return made;
  }
  const words = (text) => text.split(" ").flatMap((word, i) => [i === 0 ? null : " ", make("span", {}, word)]);
  const command = (text) => make("p", { class: "command mono" }, words(text));
  const commands = (key) => sides.map((side) => (side.commands[key] ? command(side.commands[key]) : null));

  // columns: [name, "n" for numbers, "wide" if it may be left out on a narrow screen]
  function table(caption, columns, rows, kind) {
    const cell = (name, content, column) => make(name, { class: column[1] || false }, content);
    return make("div", { class: "scroll" }, make("table", { class: kind }, caption ? make("caption", {}, caption) : null,
      columns.every((column) => column[0] === "") ? null : make("thead", {}, make("tr", {}, columns.map((column) =>
        column[0] === "" ? make("td", { class: column[1] || false })
                         : make("th", { scope: "col", class: column[1] || false }, column[0])))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((content, i) =>
        i === 0 ? make("th", { scope: "row", class: columns[0][1] || false }, content)
                : cell("td", content, columns[i])))))));
  }
  const legend = () => !two ? null : make("p", { class: "legend" }, sides.map((side, i) =>
    make("span", {}, make("i", { class: "key key" + i }), side.prefix)));
  const heading = (side) => (two ? make("h3", {}, side.prefix) : null);

  // --- charts, drawn for the width that they have ---
  const charts = [];
  function chart(label, draw) {
    const holder = make("div", { class: "chart" });
    charts.push(() => {
      const width = Math.max(260, holder.clientWidth || 720);
      if (holder.drawnWidth === width) return;
      holder.drawnWidth = width;
      const height = Math.round(Math.min(340, Math.max(230, width * 0.5)));
      holder.replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
        draw(width, height)));
    });
    return holder;
  }
  const drawAll = () => charts.forEach((draw) => draw());

  const short = (value) => {
    for (const [unit, name] of [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]]) {
      if (value >= unit) return value / unit + name;
    }
    return String(value);
  };
  const power = (value) => {
    const names = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
    for (const [unit, name] of names) if (value >= unit) return value / unit + name;
    return String(value);
  };

  function histogram(width, height) {
    const lists = sides.map((side) => (side.figures.document_tokens ? side.figures.document_tokens.histogram : []));
    const used = lists.flatMap((list) => list.map((bin, i) => (bin.count > 0 ? i : -1))).filter((i) => i >= 0);
    if (used.length === 0) return [];
    const first = Math.min(...used);
    const last = Math.max(...used);
    const totals = sides.map((side) => side.figures.documents);
    const share = (s, i) => (lists[s][i] ? lists[s][i].count / totals[s] : 0);
    let most = 0;
    for (let i = first; i <= last; ++i) for (let s = 0; s < sides.length; ++s) most = Math.max(most, share(s, i));
    const left = 46, right = 8, top = 10, bottom = 42;
    const step = (width - left - right) / (last - first + 1);
    const y = (part) => top + (height - top - bottom) * (1 - part / most);
    const marks = [];
    const unit = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25].find((each) => most / each <= 5) || 0.5;
    for (let part = 0; part <= most * 1.0001; part += unit) {
      marks.push(make("line", { class: "grid", x1: left, x2: width - right, y1: y(part), y2: y(part) }),
        make("text", { x: left - 6, y: y(part) + 4, "text-anchor": "end" }, decimal(100 * part, unit < 0.01 ? 1 : 0) + " %"));
    }
    const every = Math.ceil(34 / step);
    for (let i = first; i <= last; ++i) {
      const x = left + (i - first) * step;
      const low = i === 0 ? 0 : 2 ** (i - 1);
      const high = i === 0 ? 0 : 2 ** i - 1;
      if ((i - first) % every === 0) {
        marks.push(make("text", { x: x + step / 2, y: height - bottom + 17, "text-anchor": "middle" }, short(low)));
      }
      for (let s = 0; s < sides.length; ++s) {
        const count = lists[s][i] ? lists[s][i].count : 0;
        if (count === 0) continue;
        const wide = (step * 0.84) / sides.length;
        const above = y(share(s, i));
        const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
        marks.push(make("rect", { class: "bar fill" + s, x: x + step * 0.08 + s * wide, y: Math.min(above, height - bottom - 1),
          width: wide, height: Math.max(1, height - bottom - above), rx: 2 },
        make("title", {}, `${two ? sides[s].prefix + "\n" : ""}${range} tokens: ${number(count)} documents, ${percent(count, totals[s])}`)));
      }
    }
    marks.push(make("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      make("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "tokens per document, from"));
    return marks;
  }

  function ranks(width, height) {
    const lists = sides.map((side) => side.ranks);
    const all = lists.flat();
    if (all.length === 0) return [];
    const left = 46, right = 12, top = 10, bottom = 42;
    const mostX = Math.max(1, Math.ceil(Math.log10(Math.max(...all.map((each) => each[0])))));
    const mostY = Math.max(1, Math.ceil(Math.log10(Math.max(...all.map((each) => each[1])))));
    const x = (rank) => left + ((width - left - right) * Math.log10(rank)) / mostX;
    const y = (count) => top + (height - top - bottom) * (1 - Math.log10(count) / mostY);
    const marks = [];
    for (let p = 0; p <= mostY; ++p) {
      marks.push(make("line", { class: "grid", x1: left, x2: width - right, y1: y(10 ** p), y2: y(10 ** p) }));
      if (mostY < 7 || p % 2 === 0) {
        marks.push(make("text", { x: left - 6, y: y(10 ** p) + 4, "text-anchor": "end" }, power(10 ** p)));
      }
    }
    for (let p = 0; p <= mostX; ++p) {
      marks.push(make("line", { class: "grid", x1: x(10 ** p), x2: x(10 ** p), y1: top, y2: height - bottom }),
        make("text", { x: x(10 ** p), y: height - bottom + 17, "text-anchor": p === mostX ? "end" : "middle" }, power(10 ** p)));
    }
    lists.forEach((list, s) => {
      marks.push(make("polyline", { class: "line" + s, points: list.map(([r, c]) => `${x(r).toFixed(1)},${y(c).toFixed(1)}`).join(" ") }));
      for (const [rank, count] of list) {
        marks.push(make("circle", { class: "hit", cx: x(rank).toFixed(1), cy: y(count).toFixed(1), r: 5 },
          make("title", {}, `${two ? sides[s].prefix + "\n" : ""}rank ${number(rank)}: ${number(count)} times`)));
      }
    });
    marks.push(make("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "rank of the id; both axes are logarithmic"));
    return marks;
  }

  // --- the sections ---
  function head() {
    const names = sides.map((side) => side.prefix);
    document.title = names.join(" and ") + " \u2013 dataset report";
    document.getElementById("head").replaceWith(make("header", {},
      make("h1", {}, two ? "Two datasets compared" : names[0]), legend(),
      make("p", { class: "soft" }, "Dataset report.", data.redacted ? " Texts are left out (--redact)." : "")));
  }

  function tiles() {
    const tile = (name, values) => make("div", { class: "tile" }, make("dt", {}, name),
      values.map((value, i) => make("dd", {}, two ? make("i", { class: "key key" + i, title: sides[i].prefix }) : null, value)));
    const of = (get) => sides.map((side) => get(side.figures));
    const never = (f) => !isKnown(f.vocab_size) ? ["unknown"]
      : [number(f.never_seen), make("small", {}, `of ${number(f.vocab_size)} ids`)];
    const perToken = (f) => !f.text || f.text.tokens === 0 ? ["unknown"]
      : [(f.text.exact ? "" : "about ") + decimal(f.text.bytes / f.text.tokens, 3)];
    page.append(make("dl", { class: "tiles" },
      tile("Documents", of((f) => number(f.documents))),
      tile("Tokens", of((f) => number(f.tokens))),
      tile("Mean tokens per document", of((f) => (f.document_tokens ? decimal(f.document_tokens.mean, 1) : "none"))),
      tile("Bytes of text per token", of(perToken)),
      tile("Entropy, bits per token", of((f) => decimal(f.entropy_bits, 3))),
      tile("Ids never seen", of(never))));
  }

  function difference() {
    const d = data.difference;
    if (!d) return;
    const [a, b] = sides.map((side) => side.prefix);
    const intro = d.same ? "All documents are equal, in the same order."
      : d.first ? "The first difference: " + d.first + "." : "Only one of them has modes; all else is equal.";
    section("Comparison", intro,
      table(null, [["Documents", ""], ["", "n"]], [["in both, wherever they are", number(d.common)],
        [`only in ${a}`, number(d.only_in_a)], [`only in ${b}`, number(d.only_in_b)],
        ["in both, but moved", number(d.moved)],
        ...(d.in_place && !d.same ? [["other at the same place, where all lengths are equal", number(d.in_place.documents)]] : [])], "small"),
      command(d.command));
  }

  function files() {
    const rows = [
      ["Type of tokens", (s) => s.files.dtype], ["Sequences", (s) => number(s.figures.sequences)],
      ["Size of .bin", (s) => number(s.files.bin_bytes) + " bytes"],
      ["Size of .idx", (s) => number(s.files.idx_bytes) + " bytes"],
      ["Tokenizer", (s) => (s.files.tokenizer ? `${s.files.tokenizer.type}, ${number(s.files.tokenizer.vocab_size)} ids` : "unknown (no .meta)")],
      ["Special tokens", (s) => isKnown(s.figures.special_tokens) ? `${number(s.figures.special_tokens)} (${percent(s.figures.special_tokens, s.figures.tokens)})` : "unknown"],
      ["Tokens outside the vocabulary", (s) => number(s.figures.outside_vocab)],
      ["Checksums", (s) => make("span", { class: s.checksums.state === "verified" ? "good" : s.checksums.state === "damaged" ? "bad" : false }, s.checksums.text)],
    ];
    section("Files", null,
      table(null, [["", ""], ...sides.map((side) => [two ? side.prefix : "", ""])],
        rows.map(([name, get]) => [name, ...sides.map(get)])), commands("info"), commands("verify"));
  }

  function lengths() {
    const withLengths = sides.filter((side) => side.figures.document_tokens);
    if (withLengths.length === 0) return;
    const names = [["min", "least"], ...Object.keys(withLengths[0].figures.document_tokens.quantiles).map((q) => [q, q + " %"]), ["max", "most"]];
    const value = (d, key) => (key === "min" || key === "max" ? d[key] : d.quantiles[key]);
    const bins = withLengths.flatMap((side) => [...side.figures.document_tokens.histogram.keys()]);
    const lastBin = Math.max(...bins);
    section("Document lengths", "In tokens. A quantile of 95 % is the least length that 95 % of the documents do not exceed.",
      legend(), make("div", { class: "beside" }, chart("Histogram of document lengths", histogram),
      table(null, [["Quantile", ""], ...sides.map((side) => [two ? side.prefix : "Tokens", "n"])],
        names.map(([key, name]) => [name, ...sides.map((side) => side.figures.document_tokens ? number(value(side.figures.document_tokens, key)) : "none")]))),
      make("details", {}, make("summary", {}, "The histogram as a table"),
        table(null, [["Tokens", ""], ...sides.map((side) => [two ? side.prefix : "Documents", "n"])],
          [...Array(lastBin + 1).keys()].map((i) => [i === 0 ? "0" : i === 1 ? "1" : `${number(2 ** (i - 1))} to ${number(2 ** i - 1)}`,
            ...sides.map((side) => { const bin = side.figures.document_tokens && side.figures.document_tokens.histogram[i]; return number(bin ? bin.count : 0); })]))),
      commands("stats"));
  }

  function frequencies() {
    section("Token frequencies", "How often the ids occur, from the most frequent one to the rarest. A straight line is Zipf's law.",
      legend(), make("div", { class: two ? "" : "beside" }, chart("Counts of ids by rank", ranks),
      make("div", { class: two ? "columns" : "" }, sides.map((side) => {
        const frequent = side.figures.frequent_ids;
        const texts = frequent.some((each) => isKnown(each.text));
        return make("div", {}, heading(side), table(`The ${frequent.length} most frequent ids`,
          [["Id", ""], ["Count", "n"], ["Share", "n"], ...(texts ? [["Text", ""]] : [])],
          frequent.map((each) => [String(each.id), number(each.count), percent(each.count, side.figures.tokens),
            ...(texts ? [make("span", { class: "mono" }, quoted(each.text || ""))] : [])])));
      }))), commands("frequencies"));
  }

  function inputs() {
    if (!sides.some((side) => side.figures.inputs)) return;
    section("Inputs", "The files that the documents were read from, by PREFIX.src.",
      make("div", { class: two ? "columns" : "" }, sides.map((side, s) => {
        if (!side.figures.inputs) return make("div", {}, heading(side), make("p", {}, "unknown: there is no .src"));
        const all = side.figures.inputs;
        return make("div", { class: "side" + s }, heading(side), table(side.input_count > all.length ? `The ${all.length} largest of ${number(side.input_count)}` : null,
          [["Input", ""], ["Documents", "n"], ["Tokens", "n"], ["Share", "n"], ["", "wide"]],
          all.map((each) => [pieces(each.input), number(each.documents), number(each.tokens), percent(each.tokens, side.figures.tokens),
            make("span", { class: "share", "width%": side.figures.tokens ? (100 * each.tokens) / side.figures.tokens : 0 })])));
      })), commands("stats"));
  }

  function duplicates() {
    section("Duplicate documents", "Documents with exactly the same ids as an earlier one. Empty documents do not count.",
      make("div", { class: two ? "columns" : "" }, sides.map((side) => {
        const found = side.duplicates;
        return make("div", {}, heading(side), make("p", {}, found.documents === 0 ? "None."
          : `${number(found.documents)} documents (${percent(found.documents, side.figures.documents)}) with ${number(found.tokens)} tokens (${percent(found.tokens, side.figures.tokens)}), in ${number(found.group_count)} sets.`),
        found.groups.length === 0 ? null : table("The sets that repeat the most tokens", [["Copies", "n"], ["Tokens each", "n"], ["Documents", ""]],
          found.groups.map((group) => [number(group.copies), number(group.tokens),
            group.places.map(String).join(", ") + (group.copies > group.places.length ? ", \u2026" : "")])));
      })), commands("duplicates"));
  }

  function run() {
    if (!data.run) return;
    const r = data.run;
    section("A run", `Order ${r.order}, ${number(r.seq_length)} tokens per sample, ${number(r.ranks)} ${r.ranks === 1 ? "rank" : "ranks"}. ${r.assumed ? "Assumed: " + r.assumed + "." : ""}`,
      table(null, [["", ""], ["", "n"]], [["Samples", number(r.samples)], ["Samples per step", number(r.samples_per_step)],
        ["Steps", number(r.steps)], ["Tokens per step", number(r.samples_per_step * r.seq_length)],
        ["Tokens", number(r.samples * r.seq_length)]], "small"),
      table("By source", [["Source", ""], ["Samples", "n"], ["Share", "n"], ["Tokens", "n"], ["Epochs", "n"]],
        r.sources.map((each) => [each.prefix, number(each.samples), percent(each.samples, r.samples), number(each.samples * r.seq_length),
          each.tokens === 0 ? "-" : decimal((each.samples * r.seq_length) / each.tokens, 2)])),
      command(r.command));
  }

  function documents() {
    if (!sides.some((side) => side.documents.length > 0)) return;
    let side = 0;
    let at = 0;
    const choose = !two ? null : make("select", { "aria-label": "dataset" }, sides.map((each, i) => make("option", { value: i }, each.prefix)));
    const before = make("button", { type: "button" }, "\u2190 Previous");
    const after = make("button", { type: "button" }, "Next \u2192");
    const where = make("span", { "aria-live": "polite" });
    const about = make("p", { class: "soft" });
    const text = make("div", { class: "document mono", tabindex: "0", role: "document", "aria-label": "tokens of the document" });
    const how = command("");
    const show = () => {
      const list = sides[side].documents;
      before.disabled = at === 0;
      after.disabled = at + 1 >= list.length;
      const one = list[at];
      if (!one) {
        where.textContent = "no documents";
        about.textContent = how.textContent = "";
        text.replaceChildren();
        return;
      }
      where.textContent = `document ${number(one.document)} (${at + 1} of ${list.length} in the sample)`;
      about.replaceChildren(`${number(one.tokens)} tokens` +
        (one.ids.length < one.tokens ? `, of which the first ${number(one.ids.length)} are shown` : ""),
      one.source ? "; from " : "", one.source ? pieces(`${one.source.input}, ${"row" in one.source ? `row ${number(one.source.row)}` : `line ${number(one.source.line)}`}`) : "");
      text.replaceChildren(...one.ids.map((id, i) => one.texts
        ? make("span", { title: `token ${i}: id ${id}` }, one.texts[i] === "" ? make("i", {}, `\u2039${id}\u203a`) : pieces(one.texts[i]))
        : make("span", { class: "number", title: `token ${i}` }, String(id))));
      text.scrollTop = 0;
      how.replaceChildren(...words(one.command).filter(isKnown));
    };
    const move = (by) => {
      const next = at + by;
      if (next < 0 || next >= sides[side].documents.length) return;
      at = next;
      show();
    };
    before.addEventListener("click", () => move(-1));
    after.addEventListener("click", () => move(1));
    if (choose) choose.addEventListener("change", () => { side = Number(choose.value); at = 0; show(); });
    document.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target instanceof HTMLSelectElement) return;
      if (event.key === "ArrowLeft") move(-1);
      else if (event.key === "ArrowRight") move(1);
      else return;
      event.preventDefault();
    });
    const made = section("Documents", "A sample of documents, evenly spread. Each background is one token; its id appears when the pointer rests on it.",
      make("div", { class: "controls" }, choose, before, after, where, make("span", { class: "soft hint" }, "or the arrow keys")),
      about, text, how);
    made.classList.add("long");
    show();
  }

  head();
  tiles();
  difference();
  files();
  lengths();
  frequencies();
  inputs();
  duplicates();
  run();
  documents();
  page.append(make("footer", {}, "Made by inspect_dataset ", data.version, " with", command(data.command)));
  drawAll();
  window.addEventListener("resize", drawAll);
})();
