// Menus of the bar: one is open at a time; Escape and a press elsewhere close it.

const menus = [...document.querySelectorAll(".bar details")];

for (const menu of menus) {
  menu.addEventListener("toggle", () => {
    if (menu.open)
      menus.forEach((other) => {
        if (other !== menu) other.open = false;
      });
  });
}

document.addEventListener("pointerdown", (event) => {
  menus.forEach((menu) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus.filter(({ open }) => open)) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
