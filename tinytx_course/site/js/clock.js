// Time in front of a class: T says how long it has been, a digit gives the class as many minutes, B makes the
// screen dark.

const root = document.documentElement;
const left = h("p.clock", { role: "timer" });
const shown = h("p.clock.passed");
let began = 0;
let till = 0;
let ticking;

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
const tick = () => {
  const rest = Math.ceil((till - Date.now()) / 1000);
  left.textContent = rest > 0 ? clock(rest) : "Time is up";
  left.classList.toggle("up", rest <= 0);
  shown.textContent = clock((Date.now() - began) / 1000);
};
const stop = () => {
  clearInterval(ticking);
  left.remove();
  shown.remove();
  root.classList.remove("dark-screen");
};
addEventListener("present", () => {
  began = Date.now();
});
addEventListener("presented", stop);

addEventListener("class-key", ({ detail: key }) => {
  if (key === "b") root.classList.toggle("dark-screen");
  if (key === "t") shown.isConnected ? shown.remove() : document.body.append(shown);
  if (/^[1-9]$/.test(key)) {
    till = Date.now() + 60_000 * key;
    document.body.append(left);
  }
  if (key === "0") left.remove();
  clearInterval(ticking);
  if (left.isConnected || shown.isConnected) ticking = setInterval(tick, 1000);
  tick();
});
