// What a page of the dashboard does in the browser: it asks for itself again every second and puts
// in what has changed; its tables sort, filter and page; its form is sent without leaving it.
// Texts become text nodes here, never markup.
"use strict";

const EVERY_MS = 1000;

// Elements ---------------------------------------------------------------------------------------

function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {}))
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  element.append(...children.flat().filter((each) => each !== null));
  return element;
}

// Makes `old` into `fresh` by changing only what differs, so that focus, selection, what was typed
// and what was opened stay.
function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  if (old instanceof DataTable) return; // draws itself from its attribute
  if (old.localName === "textarea") return; // holds what was typed
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE && (node.id || node.dataset.key)) || null;
  const keyed = new Map([...old.children].map((each) => [keyOf(each), each]));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    const found = key === null ? at : keyed.get(key);
    const fits = found && found.nodeName === wanted.nodeName && keyOf(found) === key;
    if (!fits) {
      old.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    morph(found, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Tables -----------------------------------------------------------------------------------------

// A cell is a text, or [text, address or null, what it is sorted by].
const textOf = (cell) => (typeof cell === "string" ? cell : cell[0]);
const addressOf = (cell) => (typeof cell === "string" ? null : cell[1]);
const orderOf = (cell) => (typeof cell !== "string" && cell.length === 3 ? cell[2] : textOf(cell).toLowerCase());

// Names break where their parts end, sooner than within a word.
const broken = (text) =>
  text
    .split(/(?<=[_/.:,=&?])(?=[^\s_/.:,=&?])/)
    .flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

class DataTable extends HTMLElement {
  static observedAttributes = ["data"];
  sorted = null;
  descending = false;
  filter = "";
  page = 0;

  attributeChangedCallback(_name, _before, data) {
    this.table = JSON.parse(data);
    this.draw();
  }

  connectedCallback() {
    new ResizeObserver(() => this.mark()).observe(this);
    this.addEventListener("click", (event) => {
      const { sort, page } = event.target.closest("button")?.dataset ?? {};
      if (sort !== undefined) this.sort(Number(sort));
      else if (page !== undefined) this.page = Number(page);
      else return;
      this.draw();
    });
    this.addEventListener("input", (event) => {
      this.filter = event.target.value;
      this.page = 0;
      this.draw();
    });
  }

  sort(place) {
    // The largest numbers first.
    this.descending = this.sorted === place ? !this.descending : this.table.columns[place].end;
    this.sorted = place;
    this.page = 0;
  }

  rows() {
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => row.map((cell) => textOf(cell).toLowerCase()).join("\n");
    const kept = this.table.rows.filter((row) => words.every((word) => text(row).includes(word)));
    if (this.sorted === null) return kept;
    const way = this.descending ? -1 : 1;
    return kept.sort((one, other) => {
      const a = orderOf(one[this.sorted]);
      const b = orderOf(other[this.sorted]);
      if (a === b) return 0;
      if (a === null) return 1; // what is not known stands last, whichever way
      if (b === null) return -1;
      return a < b ? -way : way;
    });
  }

  draw() {
    const { name, plain, look, pageSize, rows, missing } = this.table;
    const kept = this.rows();
    const pages = plain ? 1 : Math.max(1, Math.ceil(kept.length / pageSize));
    this.page = Math.min(this.page, pages - 1);
    const shown = plain ? kept : kept.slice(this.page * pageSize, (this.page + 1) * pageSize);
    const none = rows.length ? "Nothing here matches the filter." : missing;
    const drawn = h(
      "div",
      { class: `data-table ${look}` },
      plain ? null : this.tools(kept.length),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": name },
        h(
          "table",
          {},
          h("caption", {}, name),
          h("thead", {}, h("tr", {}, this.table.columns.map((each, place) => this.head(each, place)))),
          h("tbody", {}, shown.length ? shown.map((row) => this.row(row)) : this.none(none)),
        ),
      ),
      h("p", { class: "sideways", "aria-hidden": "true" }, "→ The table goes on: scroll it sideways."),
      pages > 1 ? this.paging(pages) : null,
    );
    if (this.firstChild) morph(this.firstChild, drawn);
    else this.append(drawn);
    this.mark();
  }

  // Says that it scrolls, where it does.
  mark() {
    const scroll = this.querySelector(".scroll");
    scroll.parentElement.toggleAttribute("data-scrolls", scroll.scrollWidth > scroll.clientWidth + 1);
  }

  tools(count) {
    const { name, rows, address } = this.table;
    const number = (value) => value.toLocaleString("en");
    const files = ["csv", "json"].map((kind) =>
      h(
        "a",
        { class: "button", href: `${address}&as=${kind}`, download: "", "aria-label": `Download ${name} as ${kind.toUpperCase()}` },
        kind.toUpperCase(),
      ),
    );
    return h(
      "div",
      { class: "table-tools" },
      h("label", { class: "filter" }, h("span", {}, "Filter"), h("input", { type: "search", "aria-label": `Filter ${name}` })),
      h("span", { class: "count", role: "status" }, `${number(count)} of ${number(rows.length)}`),
      files,
    );
  }

  head(column, place) {
    const side = column.end ? "end" : "";
    if (this.table.plain) return h("th", { scope: "col", class: side }, column.label);
    const is = this.sorted === place;
    const way = is ? (this.descending ? "descending" : "ascending") : "none";
    const arrow = is ? (this.descending ? "▼" : "▲") : "";
    return h(
      "th",
      { scope: "col", class: side, "aria-sort": way },
      h(
        "button",
        { type: "button", title: column.note || null, "data-sort": place },
        column.label,
        h("span", { class: "arrow", "aria-hidden": "true" }, arrow),
      ),
    );
  }

  row(row) {
    const cells = row.map((cell, place) => {
      const address = addressOf(cell);
      const { end } = this.table.columns[place];
      const text = end ? textOf(cell) : broken(textOf(cell)); // "9.4 ms" is one word
      const side = { class: end ? "end" : "" };
      const inside = address ? h("a", { href: address }, text) : text;
      return place === 0 ? h("th", { scope: "row", ...side }, inside) : h("td", side, inside);
    });
    return h("tr", { "data-key": addressOf(row[0]) }, cells);
  }

  none(text) {
    return h("tr", {}, h("td", { colspan: this.table.columns.length, class: "none" }, text));
  }

  paging(pages) {
    // Not `disabled`: a button that became it under the keyboard would lose the focus.
    const button = (label, to) => {
      const off = to < 0 || to >= pages;
      return h("button", { type: "button", "aria-disabled": off ? "true" : null, "data-page": off ? this.page : to }, label);
    };
    return h(
      "nav",
      { class: "paging", "aria-label": `Pages of ${this.table.name}` },
      button("Previous", this.page - 1),
      h("span", { role: "status" }, `Page ${this.page + 1} of ${pages}`),
      button("Next", this.page + 1),
    );
  }
}

customElements.define("data-table", DataTable);

// Up to date -------------------------------------------------------------------------------------

let etag = "";

function put(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  document.title = fresh.title;
  morph(document.body, fresh.body);
}

async function refresh() {
  if (!document.hidden && document.querySelector("main[data-live]")) {
    try {
      const headers = etag ? { "if-none-match": etag } : {};
      const answer = await fetch(location.href, { headers, cache: "no-store" });
      if (answer.status >= 500) throw new Error(answer.statusText);
      const text = await answer.text();
      if (text) put(text);
      else document.querySelector(".stale").hidden = true;
      etag = answer.headers.get("etag") ?? "";
    } catch {
      document.querySelector(".stale").hidden = false;
    }
  }
  setTimeout(refresh, EVERY_MS);
}

setTimeout(refresh, EVERY_MS);

// Themes, copying, forms -------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const { themeChoice, copy } = event.target.closest("button")?.dataset ?? {};
  if (themeChoice) {
    document.cookie = `aftercall_theme=${themeChoice}; path=/dashboard; max-age=31536000; samesite=strict`;
    document.documentElement.dataset.theme = themeChoice;
    for (const each of document.querySelectorAll("[data-theme-choice]"))
      each.setAttribute("aria-pressed", each.dataset.themeChoice === themeChoice);
  }
  if (copy) {
    const shown = document.getElementById(copy);
    const said = event.target.closest("button").nextElementSibling;
    try {
      await navigator.clipboard.writeText(shown.textContent);
      said.textContent = "Copied.";
    } catch {
      // Where the browser keeps the clipboard to itself, the text is marked to be copied.
      window.getSelection().selectAllChildren(shown);
      said.textContent = "The text is selected; copy it with the keyboard.";
    }
  }
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("form[data-into]");
  if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-into]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("button[type=submit]");
  if (button.getAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    put(await answer.text());
    const faulty = document.querySelector("[aria-invalid]");
    if (faulty) faulty.focus();
    else document.getElementById(form.dataset.into).firstElementChild?.scrollIntoView({ block: "center" });
  } catch {
    document.querySelector(".stale").hidden = false;
  } finally {
    button.removeAttribute("aria-disabled");
  }
});
