// A table that is sorted, filtered and paged in the browser. Cells are text nodes, never markup.
import { h } from "vue";

// Names break where their parts end, sooner than within a word.
const words = (text) =>
  text
    .split(/(?<=[_/.:,=&?])(?=[^\s_/.:,=&?])/)
    .flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

// A row is a key and its cells; a cell is a text, or [text, address or null, what it is sorted by].
const textOf = (cell) => (typeof cell === "string" ? cell : cell[0]);
const addressOf = (cell) => (typeof cell === "string" ? null : cell[1]);
const sortValue = (cell) => (cell.length === 3 && typeof cell !== "string" ? cell[2] : textOf(cell).toLowerCase());

export default {
  props: {
    name: String,
    columns: Array,
    rows: Array,
    pageSize: Number,
    plain: Boolean,
    missing: String,
  },
  emits: ["download"],
  data: () => ({ sorted: null, descending: false, filter: "", page: 0 }),
  computed: {
    kept() {
      const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
      const has = (row) => {
        const text = row[1].map((cell) => textOf(cell).toLowerCase()).join("\n");
        return words.every((word) => text.includes(word));
      };
      const kept = words.length ? this.rows.filter(has) : [...this.rows];
      if (this.sorted === null) return kept;
      const way = this.descending ? -1 : 1;
      return kept.sort((one, other) => {
        const a = sortValue(one[1][this.sorted]);
        const b = sortValue(other[1][this.sorted]);
        if (a === b) return 0;
        if (a === null) return 1; // what is not known stands last, whichever way
        if (b === null) return -1;
        return a < b ? -way : way;
      });
    },
    pages() {
      return this.plain ? 1 : Math.max(1, Math.ceil(this.kept.length / this.pageSize));
    },
    at() {
      return Math.min(this.page, this.pages - 1);
    },
    shown() {
      if (this.plain) return this.kept;
      return this.kept.slice(this.at * this.pageSize, (this.at + 1) * this.pageSize);
    },
  },
  methods: {
    sort(place) {
      if (this.sorted !== place) {
        this.sorted = place;
        this.descending = this.columns[place].end; // the largest numbers first
      } else {
        this.descending = !this.descending;
      }
      this.page = 0;
    },
    tools() {
      return h("div", { class: "table-tools" }, [
        h("label", { class: "filter" }, [
          h("span", {}, "Filter"),
          h("input", {
            type: "search",
            value: this.filter,
            "aria-label": `Filter ${this.name}`,
            onInput: (event) => {
              this.filter = event.target.value;
              this.page = 0;
            },
          }),
        ]),
        h(
          "span",
          { class: "count", role: "status" },
          `${this.kept.length.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")}`,
        ),
        ...["csv", "json"].map((kind) =>
          h(
            "button",
            {
              type: "button",
              "aria-label": `Download ${this.name} as ${kind.toUpperCase()}`,
              onClick: () => this.$emit("download", kind),
            },
            kind.toUpperCase(),
          ),
        ),
      ]);
    },
    head(column, place) {
      const side = { class: column.end ? "end" : "" };
      if (this.plain) return h("th", { scope: "col", ...side }, column.label);
      const is = this.sorted === place;
      return h(
        "th",
        {
          scope: "col",
          ...side,
          "aria-sort": is ? (this.descending ? "descending" : "ascending") : "none",
        },
        h("button", { type: "button", title: column.note || null, onClick: () => this.sort(place) }, [
          column.label,
          h("span", { class: "arrow", "aria-hidden": "true" }, is ? (this.descending ? "▼" : "▲") : ""),
        ]),
      );
    },
    cell(cell, place) {
      const side = { class: this.columns[place].end ? "end" : "" };
      const address = addressOf(cell);
      const said = words(textOf(cell));
      const inside = address ? h("a", { href: address }, said) : said;
      return place === 0 ? h("th", { scope: "row", ...side }, inside) : h("td", side, inside);
    },
    paging() {
      // Not `disabled`: a button that became it under the keyboard would lose the focus.
      const button = (label, to, off) => {
        const go = () => {
          if (!off) this.page = to;
        };
        return h("button", { type: "button", "aria-disabled": off ? "true" : null, onClick: go }, label);
      };
      return h("nav", { class: "paging", "aria-label": `Pages of ${this.name}` }, [
        button("Previous", this.at - 1, this.at === 0),
        h("span", { role: "status" }, `Page ${this.at + 1} of ${this.pages}`),
        button("Next", this.at + 1, this.at === this.pages - 1),
      ]);
    },
  },
  render() {
    const body = this.shown.map((row) => h("tr", { key: row[0] }, row[1].map(this.cell)));
    const said = this.rows.length ? "Nothing here matches the filter." : this.missing;
    const none = h("tr", {}, h("td", { colspan: this.columns.length, class: "none" }, said));
    return h("div", { class: "data-table" }, [
      this.plain ? null : this.tools(),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": this.name }, [
        h("table", {}, [
          h("caption", {}, this.name),
          h("thead", {}, h("tr", {}, this.columns.map(this.head))),
          h("tbody", {}, body.length ? body : [none]),
        ]),
      ]),
      this.pages > 1 ? this.paging() : null,
    ]);
  },
};
