// A button that copies a block of code: of a session in Python, the lines that were typed.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div[class*=highlight-]:not(.highlight-text) > .highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      let text = block.querySelector("pre").textContent;
      if (/^>>> /.test(text)) {
        text = text.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4)).join("\n") + "\n";
      }
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});
