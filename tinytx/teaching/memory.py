"""The memory a process and its children take at most, watched from a thread."""

import threading

import psutil


class PeakMemory:
    """Watch the resident memory of a process and its children from a thread."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int | None) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None and pid is not None:
            self._thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)
            self._thread.start()

    def _sample(self, pid: int) -> None:
        while True:
            try:
                process = psutil.Process(pid)
                family = [process, *process.children(recursive=True)]
                self.peak = max(self.peak, sum(member.memory_info().rss for member in family))
            except psutil.Error:
                return  # the kernel has ended: the peak is known
            if self._stop.wait(0.2):
                return

    def stop(self) -> int:
        """End and return the peak in bytes."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        return self.peak
