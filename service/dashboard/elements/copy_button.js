// Copies a text. Where the browser keeps the clipboard to itself, the text is marked to be copied.
import { h } from "vue";

export default {
  props: { text: String, label: String, target: String },
  data: () => ({ said: "" }),
  methods: {
    async copy() {
      try {
        await navigator.clipboard.writeText(this.text);
        this.said = "Copied.";
      } catch {
        const shown = document.getElementById(this.target);
        if (shown) window.getSelection().selectAllChildren(shown);
        this.said = "The text is selected; copy it with the keyboard.";
      }
    },
  },
  render() {
    return h("p", { class: "copy" }, [
      h("button", { type: "button", onClick: this.copy }, this.label),
      h("span", { role: "status", class: "note" }, this.said),
    ]);
  },
};
