"""The machine under test: where its files are, which driver it has, and a private heddled on it."""

import ctypes
import ctypes.util
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from report import Failure


def root():
    return os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket: the control API speaks JSON to whoever asks so."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Machine:
    """A context: entering it starts a heddled in a temporary folder, leaving it stops that and removes the folder."""

    def __init__(self, top, gpu):
        self.top = top
        self.gpu = gpu
        self.build = os.path.join(top, "build")
        self.folder = None
        self.daemon = None
        self.api = self.attach = None

    # Where things are.

    def tool(self, name):
        return os.path.join(self.build, "bin", name)

    def interposer(self):
        return os.path.join(self.build, "lib", "heddle", "libcuda.so.1")

    def missing(self):
        """Why this machine cannot be used, or nothing."""
        for path in [self.tool(t) for t in ("heddled", "heddle", "heddle-play", "heddle-launch-cost")] + [
            self.interposer()
        ]:
            if not os.path.exists(path):
                return "%s is missing; unpack the bundle of `make device-bundle`, or run `make build`" % path
        if self.gpu == "soft":
            soft = os.path.join(self.build, "softgpu", "libcuda.so.1")
            return None if os.path.exists(soft) else "%s is missing; run `make softgpu`" % soft
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError as err:
            return "no NVIDIA driver on this machine: %s" % err
        if not os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/dxg"):
            return "no NVIDIA device on this machine"
        return None

    def environment(self, **more):
        """The environment of clients and tools: the caller's, less what would lead to another Heddle."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("HEDDLE", "SOFTGPU"))}
        env["HEDDLE_API"] = self.api
        env["HEDDLE_SOCKET"] = self.attach
        env["HEDDLE_INTERPOSER"] = self.interposer()
        if self.gpu == "soft":
            env["LD_LIBRARY_PATH"] = os.path.join(self.build, "softgpu")
            env["SOFTGPU_STATE"] = os.path.join(self.folder, "gpu")
            env["SOFTGPU_GPUS"] = "H100"
        env.update(more)
        return env

    # The daemon.

    def __enter__(self):
        # Paths of unix sockets are short, so not under the checkout.
        self.folder = tempfile.mkdtemp(prefix="heddle-device-", dir="/tmp")
        self.api = os.path.join(self.folder, "api.sock")
        self.attach = os.path.join(self.folder, "attach", "attach.sock")
        return self

    def __exit__(self, *_):
        self.end_daemon()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        config = os.path.join(self.folder, "heddled.toml")
        with open(config, "w", encoding="utf-8") as out:
            out.write("version = 1\n")
            out.write("api_socket = %s\n" % json.dumps(self.api))
            out.write("attach_dir = %s\n" % json.dumps(os.path.dirname(self.attach)))
            out.write("state_dir = %s\n" % json.dumps(os.path.join(self.folder, "state")))
        log = open(self.log(), "wb")
        self.daemon = subprocess.Popen(
            [self.tool("heddled"), "--config", config],
            env=self.environment(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        log.close()
        for _ in range(200):
            if self.daemon.poll() is not None:
                raise Failure("heddled ended with %d: %s" % (self.daemon.returncode, self.log_tail()))
            try:
                return self.call("Status")
            except OSError:
                time.sleep(0.05)
        raise Failure("heddled does not answer after 10 s: " + self.log_tail())

    def end_daemon(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            try:
                self.daemon.wait(10)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
                return False
        return True

    def stop(self):
        """Stops heddled and says what it left behind: it must end by itself and take its sockets along."""
        if self.daemon is None:
            return None
        if self.daemon.poll() is not None:
            raise Failure("heddled had ended before: " + self.log_tail())
        if not self.end_daemon():
            raise Failure("heddled did not stop within 10 s: " + self.log_tail())
        left = [path for path in (self.api, self.attach) if os.path.exists(path)]
        if self.daemon.returncode != 0 or left:
            raise Failure("heddled ended with %d, left %s" % (self.daemon.returncode, left or "nothing"))
        return {"exit": 0, "log_lines": len(self.log_text().splitlines())}

    def log(self):
        return os.path.join(self.folder, "heddled.log")

    def log_text(self):
        with open(self.log(), encoding="utf-8", errors="replace") as f:
            return f.read()

    def log_tail(self):
        return " / ".join(self.log_text().splitlines()[-3:])

    def call(self, method, request=None):
        """One call of the control API."""
        conn = UnixConnection(self.api, timeout=5)
        try:
            conn.request(
                "POST", "/heddle.v1.HeddleService/" + method, json.dumps(request or {}),
                {"Content-Type": "application/json"},
            )
            answer = conn.getresponse()
            body = answer.read()
        finally:
            conn.close()
        if answer.status != 200:
            raise Failure("%s: %d %s" % (method, answer.status, body[:200].decode(errors="replace")))
        return json.loads(body)

    def clients(self):
        return [c for c in self.call("ListClients").get("clients", []) if c.get("state") != "CLIENT_STATE_EVICTED"]

    # Programs.

    def heddle(self, *args, timeout=20, env=None):
        """Runs the command line and returns exit code, standard output and standard error."""
        return run([self.tool("heddle"), *args], env or self.environment(), timeout)


def run(command, env, timeout):
    """Runs a command in a process group of its own, which is gone when this returns."""
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=max(1, timeout))
    except subprocess.TimeoutExpired:
        # First the polite way: the command may have processes and files of its own to remove.
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            pass
        raise Failure("%s: no end within %d s" % (os.path.basename(command[0]), timeout))
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return process.returncode, out, err


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
