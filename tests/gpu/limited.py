"""``torchrun -m tests.gpu.limited pretrain ...``: a command of tinytx that says where it hangs, and ends."""

import faulthandler
import os
import sys

SECONDS = float(os.environ.get("TINYTX_TEST_SECONDS", "120"))

if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # of all threads, also while torch holds Python
    from tinytx_run.cli import main

    print(f"process {os.environ.get('RANK', 0)} has {SECONDS:g} s", file=sys.stderr, flush=True)
    sys.exit(main([*sys.argv[1:], "--json"]))
