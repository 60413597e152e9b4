"""The process that sends the calls of a training to a checker. The training waits for it nowhere.

usage: python _online_sender.py SETTINGS    (JSON)

Lines come in, {"dump": directory, "step": n} for each step that is written, then {"end": {"steps_left_out": n}} or the
end of the pipe. The directory of a step is removed when all of its calls are acknowledged. Lines go out: {"connected": true},
{"refused": why}, {"waits": why}, and at the end {"sent": calls, "acked": calls, "left": calls, "refused": why}.
"""

import json
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections import deque

from _online_calls import RecordedCalls
from _online_journal import Journal, Segment
from _online_tls import SetupError, context_of, read_token
from _online_wire import WireError, frame, read_frame

MOST_UNACKED = 2048  # calls
CONNECT, PAUSE, LONGEST_PAUSE = 10, 0.2, 5.0  # seconds
MOST_FOLDER_BYTES = 4 << 30


class Refused(Exception):
    """The checker does not want this training."""


class Steps:
    """The steps that are written and not acknowledged, oldest first. Calls are numbered from 1 over all of them."""

    def __init__(self, backward):
        self._backward = backward
        self._steps = deque()  # (first number, step, directory, names)
        self._lock = threading.Lock()
        self._next, self.acked = 1, 0
        self.end, self.closed = None, False

    def listen(self, stream):
        """Takes lines until the training is gone."""
        for line in stream:
            said = json.loads(line)
            if "end" in said:
                self.end = said["end"]
                break
            try:
                names = RecordedCalls(said["dump"], self._backward).names
            except (OSError, ValueError):
                continue  # a step of which nothing was written
            with self._lock:
                self._steps.append((self._next, said["step"], said["dump"], names))
                self._next += len(names)
        self.closed = True

    def ack(self, number):
        """All up to this one are kept by the checker."""
        with self._lock:
            self.acked = max(self.acked, min(number, self._next - 1))
            over = []
            while self._steps and self._steps[0][0] + len(self._steps[0][3]) <= self.acked + 1:
                over.append(self._steps.popleft()[2])
        for folder in over:
            shutil.rmtree(folder, ignore_errors=True)
            try:
                os.rmdir(os.path.dirname(folder))
            except OSError:
                pass  # another rank is in it

    def calls(self, number):
        """Yields (number, header, bodies) from this one on, of what is written now."""
        while True:
            with self._lock:
                step = next((s for s in self._steps if s[0] <= number < s[0] + len(s[3])), None)
            if step is None:
                return
            first, index, folder, names = step
            recorded = RecordedCalls(folder, self._backward)
            for name in names[number - first :]:
                header, bodies = recorded.frame(name)
                yield number, {**header, "seq": number, "step": index}, bodies
                number += 1

    @property
    def left(self):
        """How many are not acknowledged."""
        return self._next - 1 - self.acked


class Line:
    """A connection to the checker."""

    def __init__(self, settings, tls, first):
        raw = socket.create_connection((settings["host"], settings["port"]), CONNECT)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = tls.wrap_socket(raw, server_hostname=settings["host"]) if tls else raw
        greeting = {"run": settings["run"], "rank": settings["rank"], "from": first}
        self.send({**greeting, "token": read_token(settings["token"])}, ())
        self.acked = self._answer()["acked"]
        self._socket.settimeout(None)  # a slow checker is waited for, by this process alone

    def send(self, header, bodies):
        """Sends a frame."""
        for part in frame(header, bodies):
            self._socket.sendall(part)

    def _answer(self):
        header, _ = read_frame(self._socket.recv, 1 << 16, 0)
        if "refused" in header:
            raise Refused(str(header["refused"])[:300])
        return header

    def answers(self, seconds):
        """Takes what the checker said; waits at most so long for the first."""
        while True:
            pending = getattr(self._socket, "pending", None)
            if not (pending and pending()) and not select.select([self._socket], [], [], seconds)[0]:
                return False
            header = self._answer()
            self.acked = max(self.acked, header.get("acked", 0))
            if header.get("ended"):
                return True
            seconds = 0

    def close(self):
        """Closes it."""
        self._socket.close()


class Sender:
    """Sends over connections that may break, or into a shared folder."""

    def __init__(self, settings, say):
        self._settings, self._say = settings, say
        self._steps = Steps(settings["backward"])
        self._sent, self.ended = 0, False
        self._end_of_time = None

    def run(self):
        """Returns when all is acknowledged, or the time for it is over."""
        threading.Thread(target=self._steps.listen, args=(sys.stdin.buffer,), daemon=True).start()
        why = ""
        try:
            if self._settings["folder"]:
                self._into_folder()
            else:
                self._over_connections(context_of(self._settings["tls"], "client"))
        except Refused as refusal:
            why = str(refusal)
        except SetupError as error:
            why = str(error)
        if why:
            self._say({"refused": why})
        self._say({"sent": self._sent, "acked": self._steps.acked, "left": self._steps.left, "refused": why})

    def _is_over(self):
        """Whether the training is at its end, and everything it left was sent or waited for long enough."""
        if not self._steps.closed:
            return False
        if self._end_of_time is None:
            self._end_of_time = time.monotonic() + self._settings["end_wait"]
        return time.monotonic() > self._end_of_time

    def _over_connections(self, tls):
        pause, told = PAUSE, False
        while not self.ended and not self._is_over():
            try:
                line = Line(self._settings, tls, self._steps.acked + 1)
            except (OSError, EOFError, WireError) as error:
                if not told:
                    told = True
                    self._say({"waits": str(error) or type(error).__name__})
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause, told = PAUSE, False
            self._say({"connected": True})
            try:
                self._talk(line)
            except (OSError, EOFError) as error:
                self._say({"waits": str(error) or type(error).__name__})
            finally:
                line.close()

    def _talk(self, line):
        number, said_end = line.acked + 1, False
        self._steps.ack(line.acked)
        while not self._is_over():
            some = False
            for number, header, bodies in self._steps.calls(number):  # noqa: B020
                some = True
                line.send(header, bodies)
                self._sent = max(self._sent, number)
                number += 1
                wait = 0.2 if number - line.acked > MOST_UNACKED else 0
                line.answers(wait)
                self._steps.ack(line.acked)
                if number - line.acked > MOST_UNACKED or self._is_over():
                    break
            if self._steps.closed and self._steps.left == 0 and not said_end:
                said_end = True
                line.send({"end": True, "calls": self._steps.acked, **(self._steps.end or {})}, ())
            self.ended = line.answers(0 if some else 0.1)
            self._steps.ack(line.acked)
            if self.ended:
                return
        if not said_end:  # the time is over, and the checker need not wait for the rest
            line.send(
                {"end": True, "calls": self._steps.acked, "left": self._steps.left, **(self._steps.end or {})}, ()
            )
            self.ended = line.answers(2)
            self._steps.ack(line.acked)

    def _into_folder(self):
        journal, number = Journal(self._settings["folder"]), 1
        run, rank = self._settings["run"], self._settings["rank"]
        self._say({"connected": True})
        while not self._is_over():
            if journal.bytes() > MOST_FOLDER_BYTES:
                time.sleep(0.2)
                continue
            segment = None
            for number, header, bodies in self._steps.calls(number):  # noqa: B020
                if segment is not None and (segment.full or segment.step != header["step"]):
                    break
                segment = segment or Segment(journal.folder, run, rank, header["step"], number)
                segment.add(header, bodies)
                number += 1
            if segment is not None:
                segment.close()
                self._sent = number - 1
                self._steps.ack(number - 1)
            elif self._steps.closed and self._steps.left == 0:
                journal.note(run, rank, "end", {"calls": self._steps.acked, **(self._steps.end or {})})
                self.ended = True
                return
            else:
                time.sleep(0.05)


def main():
    """Runs the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training says when it is over

    def say(value):
        try:
            sys.stdout.write(json.dumps(value) + "\n")
            sys.stdout.flush()
        except OSError:
            pass  # the training is gone, and what it has left is sent all the same

    Sender(json.loads(sys.argv[1]), say).run()


if __name__ == "__main__":
    main()
