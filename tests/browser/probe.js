// How long from an event to changed pixels below an element; see bench.py.
() => {
  const watched = document.querySelector(".tx");
  const probe = { stamp: null, waited: null, asked: false };
  window.probe = probe;
  // Forget the last move when nothing has happened for a while.
  probe.quiet = () =>
    new Promise((done) =>
      setTimeout(() => {
        Object.assign(probe, { stamp: null, waited: null, asked: false });
        done(1);
      }, 250),
    );
  for (const name of ["keydown", "pointermove"]) {
    const note = (event) => {
      if (event.isTrusted && probe.stamp === null) probe.stamp = event.timeStamp;
    };
    window.addEventListener(name, note, { capture: true, passive: true });
  }
  const drawn = () => {
    if (probe.stamp === null || probe.asked) return;
    probe.asked = true;
    const frame = () => {
      // A message sent in a frame arrives when that frame has been drawn.
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        probe.waited = performance.now() - probe.stamp;
      };
      channel.port2.postMessage(0);
    };
    requestAnimationFrame(frame);
  };
  new MutationObserver(drawn).observe(watched, {
    subtree: true,
    childList: true,
    attributes: true,
    characterData: true,
  });
  for (const name of ["fillRect", "putImageData"]) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function paint(...values) {
      if (watched.contains(this.canvas)) drawn();
      return plain.apply(this, values);
    };
  }
  return 1;
};
