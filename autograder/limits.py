"""Stop a function that hangs."""

import signal
import sys
import threading
from contextlib import contextmanager


class TimedOut(BaseException):
    """Raised inside the learner's code. Not an Exception, so that `except Exception` does not swallow it."""


suspended = False  # set while a debugger has the terminal: time spent reading is not the function's


@contextmanager
def time_limit(seconds: float):
    """Raise `TimedOut` in the body after so many seconds, again each second until it gives way, and once more at its end.

    The body cannot get away with swallowing it. Works where there are alarm signals and in the main thread;
    elsewhere, and under a tracing debugger, nothing is limited.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread() or sys.gettrace():
        yield
        return

    rung = False

    def ring(signum, frame):
        nonlocal rung
        if not suspended:
            rung = True
            raise TimedOut

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if rung:
        raise TimedOut
