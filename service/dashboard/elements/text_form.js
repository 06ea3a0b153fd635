// A form of the browser's own fields. Nothing is sent while somebody types; Ctrl+Enter sends all.
import { h } from "vue";

export default {
  props: {
    fields: Array, // {name, label, hint, rows, max, choices, fills: {field, pairs}}
    texts: Object, // by name; taken over whenever `filled` grows
    filled: Number,
    faults: Object, // by name
    action: String,
    waiting: Boolean,
  },
  emits: ["ask"],
  data: () => ({ typed: {} }),
  watch: {
    filled: {
      immediate: true,
      handler() {
        this.typed = { ...this.texts };
      },
    },
    faults() {
      const first = this.fields.find((field) => this.faults[field.name]);
      if (first) this.$nextTick(() => document.getElementById(this.id(first))?.focus());
    },
  },
  methods: {
    id(field) {
      return `${this.$el?.id || "form"}-${field.name}`;
    },
    ask() {
      if (!this.waiting) this.$emit("ask", { ...this.typed });
    },
    left(field) {
      const fills = field.fills;
      if (!fills || this.typed[fills.field]) return;
      const pair = fills.pairs.find(([name]) => name === this.typed[field.name]);
      if (pair) this.typed[fills.field] = pair[1];
    },
    field(field) {
      const id = this.id(field);
      const fault = this.faults[field.name];
      const told = [field.hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ");
      const attributes = {
        id,
        name: field.name,
        value: this.typed[field.name] ?? "",
        maxlength: field.max,
        spellcheck: "false",
        autocomplete: "off",
        "aria-invalid": fault ? "true" : null,
        "aria-describedby": told || null,
        onInput: (event) => (this.typed[field.name] = event.target.value),
        onChange: () => this.left(field),
      };
      return h("div", { class: { field: true, wide: field.rows > 0 } }, [
        h("label", { for: id }, field.label),
        field.rows > 0
          ? h("textarea", { ...attributes, rows: field.rows })
          : h("input", { ...attributes, type: "text", list: field.choices ? `${id}-list` : null }),
        field.choices
          ? h(
              "datalist",
              { id: `${id}-list` },
              field.choices.map((choice) => h("option", { value: choice })),
            )
          : null,
        field.hint ? h("p", { id: `${id}-hint`, class: "note" }, field.hint) : null,
        fault ? h("p", { id: `${id}-fault`, class: "fault" }, fault) : null,
      ]);
    },
  },
  mounted() {
    this.$forceUpdate(); // the element's own id is known from now on
  },
  render() {
    return h(
      "form",
      {
        class: "text-form",
        novalidate: true,
        onSubmit: (event) => {
          event.preventDefault();
          this.ask();
        },
        onKeydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            this.ask();
          }
        },
      },
      [
        h("div", { class: "fields" }, this.fields.map(this.field)),
        h("button", { type: "submit", class: "main", disabled: this.waiting }, this.action),
      ],
    );
  },
};
