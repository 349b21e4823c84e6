// The contents: where the reader is, and what was read, which the browser remembers for the first page.

const contents = document.querySelector(".contents");

if (contents) {
  const links = [...contents.querySelectorAll("a")];
  // An id may itself hold %22: a browser looks for the fragment as it is written, then decoded.
  const named = (hash) => document.getElementById(hash) ?? document.getElementById(decodeURIComponent(hash));
  const headings = links.map((link) => named(link.hash.slice(1)));
  const chapters = links.filter((link) => !link.parentElement.parentElement.closest("li"));
  const here = contents.querySelector(".here");
  const wide = matchMedia("(min-width: 68rem)");
  const lesson = document.body.dataset.lesson;
  const place = `read:${lesson}`;
  const nth = h("span.nth");
  const bar = document.querySelector(".bar");
  here.before(nth);
  let at = -1;
  let furthest = recalled(place)?.seen ?? 0;

  const unfold = () => {
    contents.open = wide.matches;
  };
  wide.addEventListener("change", unfold);
  unfold();
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) contents.open = false;
  });

  // A link into what is folded opens it.
  const reach = () => {
    const target = named(location.hash.slice(1));
    const folded = target?.closest(".further:not([open])");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("hashchange", reach);
  reach();

  const say = () => {
    bar.style.setProperty(
      "--read",
      Math.min(1, scrollY / Math.max(1, document.documentElement.scrollHeight - innerHeight)),
    );
    const line = innerHeight * 0.3;
    const end = scrollY + innerHeight > document.documentElement.scrollHeight - 40;
    const now = end
      ? headings.length - 1
      : headings.findLastIndex(
          (heading) => heading.checkVisibility() && heading.getBoundingClientRect().top < line,
        );
    if (now === at) return;
    at = now;
    links.forEach((link, i) => {
      if (i === now) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    const chapter = now < 0 ? null : links[now].closest(".contents > nav > ol > li").querySelector("a");
    chapters.forEach((link) => link.parentElement.classList.toggle("now", link === chapter));
    nth.textContent = chapter ? `· ${chapters.indexOf(chapter) + 1} of ${chapters.length} ` : "";
    here.textContent = now < 0 ? "" : links[now].textContent;
    links[now]?.scrollIntoView?.({ block: "nearest", behavior: "instant" });
    if (!lesson || now < 0) return;
    const seen = end ? chapters.length : chapters.indexOf(chapter);
    furthest = Math.max(furthest, seen);
    remember(place, {
      seen: furthest,
      of: chapters.length,
      anchor: links[now].hash,
      title: links[now].textContent,
    });
    remember("last", lesson);
  };
  let asked = 0;
  const ask = () => {
    if (asked) return;
    asked = requestAnimationFrame(() => {
      asked = 0;
      say();
    });
  };
  addEventListener("scroll", ask, { passive: true });
  ask();
}
