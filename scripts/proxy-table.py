#!/usr/bin/env python3
"""Prints the table of docs/operate/proxy.md: spillway proxy beside nginx, with each of several limit_conn,
and beside a bare httputil.ReverseProxy, in front of services whose capacity nobody told them.

    python3 scripts/proxy-table.py [--seconds N] [--repeats N] [--only python,node,go]

Needs go, nginx and node. A service works on four requests at a time, 20 ms each, and the others wait: 200
requests a second. Clients come in an open loop and leave after a second. Each figure is the median of the
repeats, with the lowest and the highest. The second table has ratios within a repeat: to the best limit_conn of
that repeat, of one limit_conn to itself (A/A), and to a bare ReverseProxy. Everything is on this machine: leave it
alone meanwhile. What a proxy used of the processors is read from /proc, so this is for Linux.
"""
import argparse, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAPACITY = 200
LOADS = (0.7, 1.5, 3)
LIMITS = (4, 8, 16, 32, 64)
TWICE = 16  # the limit that is measured twice

PYTHON = """
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
slots = threading.Semaphore(4)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with slots:
            time.sleep(0.02)
        self.send_response(200); self.send_header("Content-Length", "3"); self.end_headers()
        self.wfile.write(b"ok\\n")
    def log_message(self, *args): pass
class Server(ThreadingHTTPServer):
    request_queue_size = 1024
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

NODE = """
let free = 4; const waiting = [];
const work = (res) => { free--; setTimeout(() => { res.end("ok\\n"); free++; if (waiting.length) work(waiting.shift()); }, 20); };
require("http").createServer((req, res) => { if (free > 0) work(res); else waiting.push(res); }).listen(+process.argv.at(-1), "127.0.0.1");
"""

GO = """
package main

import ("io"; "net/http"; "os"; "time")

func main() {
	slots := make(chan struct{}, 4)
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slots <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		<-slots
		io.WriteString(w, "ok\\n")
	})))
}
"""

BARE = """
package main

import ("net/http"; "net/http/httputil"; "net/url"; "os")

func main() {
	to, _ := url.Parse("http://127.0.0.1:" + os.Args[2])
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 1000
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}))
}
"""

NGINX = """
worker_processes 2; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
  limit_conn_zone $server_name zone=all:1m; limit_conn_status 503; limit_conn_log_level info;
  upstream service {{ server 127.0.0.1:{to}; keepalive 64; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; server_name service; location / {{ {limit} proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://service; }} }}
}}
"""

def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]

def start(*command):
    return subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

def stop(process):
    """Ends a process that this script started, and its children."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

def answers(at):
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{at}/", timeout=2).read()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing answers at port {at}")

def used(group):
    """Processor seconds of the processes of a group."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")

def measure(spillway, at, load, seconds, front):
    """Goodput a second until the last answer, share refused, and processor milliseconds a request of the front."""
    before = used(front.pid) if front else 0
    out = subprocess.run([spillway, "load", "--rate", str(int(load * CAPACITY)), "--poisson", "--duration", f"{seconds}s", "--timeout", "1s", "--json", f"http://127.0.0.1:{at}/"],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True)
    result = json.loads(out.stdout)
    outcomes = {o["kind"]: o["count"] for o in result["outcomes"]}
    offered = sum(outcomes.values())
    cost = 1000 * (used(front.pid) - before) / offered if front else 0
    time.sleep(1.2)  # what was left behind is worked off
    return result["goodput"], outcomes.get("rejected", 0) / offered, cost

def spread(values, form):
    """The median of values, with the lowest and the highest."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=int, default=4)
    args.add_argument("--repeats", type=int, default=3)
    args.add_argument("--only", default="python,node,go")
    args = args.parse_args()
    for program in ("go", "nginx", "node"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    work = tempfile.mkdtemp()
    running = []
    try:
        def built(name, source):
            with open(f"{work}/{name}.go", "w") as f:
                f.write(source)
            subprocess.run(["go", "build", "-o", f"{work}/{name}", f"{work}/{name}.go"], check=True, cwd=work, env={**os.environ, "GOWORK": "off", "GOFLAGS": ""})
            return f"{work}/{name}"
        spillway = f"{work}/spillway"
        subprocess.run(["go", "build", "-o", spillway, "./cmd/spillway"], check=True, cwd=ROOT)
        bare, go = built("bare", BARE), built("service", GO)
        services = {"python": (sys.executable, "-c", PYTHON), "node": ("node", "-e", NODE, "--"), "go": (go,)}

        def nginx(at, to, limit):
            folder = tempfile.mkdtemp(dir=work)
            os.chmod(work, 0o755); os.chmod(folder, 0o777)
            with open(f"{folder}/nginx.conf", "w") as f:
                f.write(NGINX.format(dir=folder, port=at, to=to, limit=f"limit_conn all {limit};" if limit else ""))
            return start("nginx", "-c", f"{folder}/nginx.conf", "-p", folder)

        fronts = {"nobody": None, "a bare ReverseProxy": lambda at, to: start(bare, at, to), "nginx": lambda at, to: nginx(at, to, 0)}
        for limit in LIMITS:
            fronts[f"nginx, limit_conn {limit}"] = lambda at, to, limit=limit: nginx(at, to, limit)
        fronts[f"nginx, limit_conn {TWICE} again"] = fronts[f"nginx, limit_conn {TWICE}"]
        fronts["spillway proxy"] = lambda at, to: start(spillway, "proxy", "--to", f"http://127.0.0.1:{to}", "--listen", f"127.0.0.1:{at}", "--admin", f"127.0.0.1:{port()}", "--deadline", "1s")

        print("| service | in front | " + " | ".join(f"{l}x: good answers a second" for l in LOADS) + " | refused at 0.7x | ms of a processor a request at 0.7x |")
        print("|---|---|" + "---:|" * (len(LOADS) + 2), flush=True)
        ratios = []
        for name in args.only.split(","):
            rows = {front: [] for front in fronts}
            for _ in range(args.repeats):
                for front, begin in fronts.items():
                    to, at = port(), port()
                    service = start(*services[name], to)
                    running.append(service)
                    answers(to)
                    process = begin(at, to) if begin else None
                    if process:
                        running.append(process)
                        answers(at)
                    else:
                        at = to
                    rows[front].append([measure(spillway, at, load, args.seconds, process) for load in LOADS])
                    for p in (process, service):
                        if p:
                            stop(p)
                            running.remove(p)
            for front, runs in rows.items():
                goodput = [spread([run[i][0] for run in runs], ".0f") for i in range(len(LOADS))]
                print(f"| {name} | {front} | " + " | ".join(goodput) + f" | {spread([100 * run[0][1] for run in runs], '.1f')} % | {spread([run[0][2] for run in runs], '.2f')} |", flush=True)

            def ratio(front, to, i, k):
                return spread([mine[i][k] / max(run[i][k] for run in others) for mine, *others in zip(rows[front], *(rows[t] for t in to))], ".2f")
            limits, again = [f"nginx, limit_conn {limit}" for limit in LIMITS], f"nginx, limit_conn {TWICE} again"
            ratios.append(f"| {name} | " + " | ".join(ratio("spillway proxy", limits, i, 0) for i in range(len(LOADS))) +
                          f" | {ratio(again, [f'nginx, limit_conn {TWICE}'], 1, 0)} | {ratio('spillway proxy', ['a bare ReverseProxy'], 0, 2)} |")
        print("\n| service | " + " | ".join(f"goodput at {l}x of the best limit_conn" for l in LOADS) + " | A/A at 1.5x | processor time of a bare ReverseProxy |")
        print("|---|" + "---:|" * (len(LOADS) + 2))
        print("\n".join(ratios), flush=True)
    finally:
        for p in running:
            stop(p)
        shutil.rmtree(work, ignore_errors=True)

main()
