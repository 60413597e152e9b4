"""The process of `msprobe acc_check --online` that takes calls of trainings and keeps them until they are judged.

usage: python _online_receiver.py SETTINGS    (JSON; descriptor 0 is a socket to the command; the modules _online_* are there already)

SETTINGS: {"journal", "host", "port", "tls", "token", "ranks", "most_bytes"}; without "port" the journal is a shared folder.
First a line goes out, {"listening": "HOST:PORT"} or {"error": text}. To {"next": true} the answer is {"warning": text}s and then
{"dump": path, "step", "rank", "calls"} or, when all ranks are at their end, {"ended": [what they said]}. {"judged": true} after a dump
forgets it.
"""

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time

from _online_calls import DumpWriter, check_call
from _online_journal import Journal, Segment, check_greeting
from _online_tls import SetupError, context_of, is_here, read_token, same_token
from _online_wire import MOST_GREETING, WireError, frame, frames_of, number, read_frame

GREETING, STALLED = 10, 120  # seconds
MOST_CONNECTIONS = 256
COMMIT_CALLS, COMMIT_BYTES = 64, 16 << 20
IDLE = 0.3  # seconds after which a file is closed, so that it is judged


class Connection(threading.Thread):
    """One training process."""

    def __init__(self, receiver, raw):
        super().__init__(daemon=True)
        self._receiver, self._raw = receiver, raw
        self._socket, self._segment = None, None
        self._run, self._rank, self._last = "", 0, 0
        self._uncommitted = self._uncommitted_bytes = 0

    def run(self):
        """Takes what it says until it is gone."""
        try:
            self._raw.settimeout(GREETING)
            tls = self._receiver.tls
            self._socket = tls.wrap_socket(self._raw, server_side=True) if tls else self._raw
            if self._greet():
                self._serve()
        except WireError as error:
            self._receiver.warn(f"a connection was closed: {error}")
            self._refuse(str(error))
        except (OSError, EOFError) as error:
            if not isinstance(error, EOFError) and not self._run:
                self._receiver.warn(f"a connection was closed: {str(error)[:200] or type(error).__name__}")
        finally:
            try:
                self._close_segment()  # before it leaves: who comes again hears what is kept
            finally:
                self._receiver.leave(self)
                self.cut()

    def cut(self):
        """Ends the connection, whatever it is doing."""
        for stream in (self._socket, self._raw):
            if stream is not None:
                try:
                    stream.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already
                stream.close()

    def _say(self, header):
        self._socket.sendall(b"".join(frame(header)))

    def _refuse(self, why):
        try:
            self._say({"refused": why})
        except (OSError, AttributeError):
            pass  # nobody is there to hear it

    def _greet(self):
        header, _ = read_frame(self._socket.recv, MOST_GREETING, 0)
        if self._receiver.token and not same_token(header.get("token"), self._receiver.token):
            self._receiver.warn("a connection was refused: it has not the token")
            self._refuse("it has not the token")
            return False
        self._run, self._rank = check_greeting(header)
        if self._receiver.ranks and self._rank not in self._receiver.ranks:
            self._receiver.warn(f"a connection was refused: rank {self._rank} is not in rank_list")
            self._refuse(f"rank {self._rank} is not in rank_list")
            return False
        # What was acknowledged before is in this journal, or in that of another checker.
        self._last = max(self._receiver.enter(self, self._run, self._rank), number(header, "from") - 1)
        self._say({"acked": self._last})
        self._socket.settimeout(STALLED)
        return True

    def _ready(self, seconds):
        pending = getattr(self._socket, "pending", None)
        return bool(pending and pending()) or bool(select.select([self._socket], [], [], seconds)[0])

    def _serve(self):
        quiet = 0.0
        while True:
            if not self._ready(0 if self._uncommitted else 0.1):
                self._commit()
                quiet += 0.1
                if self._segment is not None and quiet >= IDLE:
                    self._close_segment()
                continue
            quiet = 0.0
            header, body = read_frame(self._socket.recv)
            if header.get("end") is True:
                self._commit(), self._close_segment()
                kept = {key: header.get(key) for key in ("calls", "left", "steps_left_out")}
                self._receiver.end(self._run, self._rank, kept)
                self._say({"acked": self._last, "ended": True})
                return
            self._take(header, body)

    def _take(self, header, body):
        check_call(header, body)
        if header["seq"] != self._last + 1:
            raise WireError(f"call {header['seq']} comes after {self._last}")
        if self._segment is not None and (self._segment.step != header["step"] or self._segment.full):
            self._commit(), self._close_segment()
        if self._segment is None:
            folder = self._receiver.journal.folder
            self._segment = Segment(folder, self._run, self._rank, header["step"], header["seq"])
        self._segment.add(header, (body,))
        self._last = header["seq"]
        self._uncommitted += 1
        self._uncommitted_bytes += len(body)
        if self._uncommitted >= COMMIT_CALLS or self._uncommitted_bytes >= COMMIT_BYTES:
            self._commit()

    def _commit(self):
        if self._uncommitted:
            self._segment.commit()
            self._uncommitted = self._uncommitted_bytes = 0
            self._receiver.wait_for_room()
            self._say({"acked": self._last})

    def _close_segment(self):
        if self._segment is not None:
            self._segment.close()
            self._segment = None


class Receiver:
    """All connections, and the journal."""

    def __init__(self, settings):
        self.journal = Journal(settings["journal"])
        self.ranks = settings["ranks"]
        self.tls, self.token = None, ""
        self._most_bytes = settings["most_bytes"]
        self._lock = threading.Lock()
        self._warnings, self._connections = [], {}
        self._count = 0

    def listen(self, settings):
        """Binds, and returns the address."""
        self.tls = context_of(settings["tls"], "server")
        self.token = read_token(settings["token"])
        if not self.tls and not self.token and not is_here(settings["host"]):
            raise SetupError("without tls_path and token_path only this machine may connect: listen on 127.0.0.1")
        family = socket.AF_INET6 if ":" in settings["host"] else socket.AF_INET
        server = socket.create_server((settings["host"], settings["port"]), family=family, backlog=64)
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        return f"{settings['host']}:{server.getsockname()[1]}"

    def _accept(self, server):
        while True:
            try:
                raw, _ = server.accept()
            except OSError as error:
                self.warn(f"no connection could be taken: {error}")
                time.sleep(1)
                continue
            with self._lock:
                room = self._count < MOST_CONNECTIONS
                self._count += room
            if room:
                Connection(self, raw).start()
            else:
                raw.close()

    def enter(self, connection, run, rank):
        """A training is there, perhaps again: its earlier connection is over. Returns its last call that is kept."""
        with self._lock:
            before = self._connections.pop((run, rank), None)
        if before is not None:
            before.cut()
            before.join()
        with self._lock:
            self._connections[run, rank] = connection
        return self.journal.last(run, rank)

    def leave(self, connection):
        """A connection is over."""
        with self._lock:
            self._count -= 1
            self._connections = {key: other for key, other in self._connections.items() if other is not connection}

    def end(self, run, rank, said):
        """A training is at its end, and all that it said is in the journal."""
        self.journal.note(run, rank, "end", said)

    def wait_for_room(self):
        """While too much waits to be judged nothing is read, so that the training's side waits."""
        while self.journal.bytes() > self._most_bytes:
            time.sleep(0.2)

    def warn(self, text):
        """Something that whoever runs the command should know."""
        with self._lock:
            if len(self._warnings) < 100:
                self._warnings.append(text)

    def warnings(self):
        """Takes them."""
        with self._lock:
            found, self._warnings = self._warnings, []
        return found

    def next(self):
        """The next dump to judge, or what all said at their end; None when there is neither yet."""
        for path, run, rank, step in self.journal.waiting():
            if self.ranks and rank not in self.ranks:
                continue
            return self._unpacked(path, run, rank, step)
        ended = self.journal.ended()
        here = {rank for _, rank in ended}
        with self._lock:
            busy = bool(self._connections)
        if ended and not busy and (here >= set(self.ranks) if self.ranks else True):
            return {"ended": [{"rank": rank, **said} for (_, rank), said in sorted(ended.items())]}
        return None

    def _unpacked(self, path, run, rank, step):
        folder = os.path.join(self.journal.folder, "unpacked")
        shutil.rmtree(folder, ignore_errors=True)
        dump, last, calls = DumpWriter(folder), 0, 0
        with open(path, "rb") as file:
            for header, body in frames_of(file):
                try:
                    check_call(header, body)
                except WireError as error:  # of a shared folder, where nobody looked before
                    self.warn(f"{path}: a call is left out: {error}")
                    continue
                dump.add(header, body)
                last, calls = max(last, header["seq"]), calls + 1
        self._judged = (path, run, rank, last)
        return {"dump": dump.close(), "step": step, "rank": rank, "calls": calls}

    def forget(self):
        """The last one is judged."""
        self.journal.forget(*self._judged)
        shutil.rmtree(os.path.join(self.journal.folder, "unpacked"), ignore_errors=True)


def serve(receiver, stream, say):
    """Answers the command until it is gone."""
    for line in stream:
        request = json.loads(line)
        if "judged" in request:
            receiver.forget()
            say({"forgotten": True})
            continue
        while True:
            for text in receiver.warnings():
                say({"warning": text})
            found = receiver.next()
            if found is not None:
                if "ended" in found:
                    receiver.journal.clear()
                say(found)
                break
            # The command's end is seen here, too.
            if select.select([stream], [], [], 0.1)[0] and not stream.peek(1):
                return


def main():
    """Runs the process."""
    connection = socket.socket(fileno=os.dup(0))
    stream, out = connection.makefile("rb"), connection.makefile("wb")
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command says when it is over

    def say(value):
        out.write(json.dumps(value).encode() + b"\n")
        out.flush()

    settings = json.loads(sys.argv[1])
    try:
        receiver = Receiver(settings)
        if "port" in settings:
            lock = open(os.path.join(receiver.journal.folder, "lock"), "wb")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            receiver.journal.adopt()
            where = receiver.listen(settings)
        else:
            where = settings["journal"]
    except BlockingIOError:
        say({"error": f"another checker uses {settings['journal']}: choose another -o"})
        return
    except (SetupError, OSError, OverflowError) as error:
        say({"error": str(error)})
        return
    try:
        say({"listening": where})
        serve(receiver, stream, say)
    except OSError as error:
        if not isinstance(error, ConnectionError):
            raise  # the disk is full
        # The command is gone; what it had is in the journal.


if __name__ == "__main__":
    main()
