"""Receives what a monitor sends as OTLP, by OpenTelemetry's own schema, and compares it with the
monitor's store."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

TOKEN = "a-token-of-16-letters"
received = []


class Receiver(BaseHTTPRequestHandler):
    """What a collector does with metrics in JSON."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/metrics", self.path
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        # Strict: a name that the schema does not have is an error.
        received.append(Parse(body, ExportMetricsServiceRequest()))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def run(rtscope, scratch, port):
    """The lines of the store that a monitor left which sent to us."""
    token = scratch / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    settings, store = scratch / "monitor.toml", scratch / "monitor.db"
    settings.write_text(
        f"every = '2s'\nstore = '{store}'\nall = true\n[otlp]\n"
        f"to = 'http://127.0.0.1:{port}'\nevery = '1s'\ntoken_file = '{token}'\n"
    )
    monitor = [rtscope, "monitor", "--config", settings, "--for", "9s"]
    ended = subprocess.run(monitor, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended
    assert "warning" not in ended.stderr, ended.stderr
    export = [rtscope, "monitor", "export", "--store", store, "--to", "json"]
    lines = subprocess.run(export, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def counts(request):
    """Samples by scope and phase, and the instants of the last point."""
    [resource] = request.resource_metrics
    words = {word.key: word.value.string_value for word in resource.resource.attributes}
    assert words["service.name"] == "rtscope-monitor" and words["host.name"], words
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    points = {}
    for point in metrics["rtscope.phase"].histogram.data_points:
        labels = tuple(word.value.string_value for word in point.attributes)
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
        assert sum(point.bucket_counts) == point.count
        assert list(point.explicit_bounds) == sorted(point.explicit_bounds)
        points[labels] = (point.count, point.start_time_unix_nano, point.time_unix_nano)
    assert metrics["rtscope.monitor.intervals"].sum.is_monotonic
    return points


def stored(lines, until_ns):
    """The same of the intervals that ended by then."""
    sums = {}
    for line in lines:
        if line["end_ns"] > until_ns:
            continue
        for series in line["histograms"]:
            key = (series["scope"], series["phase"])
            sums[key] = sums.get(key, 0) + series["samples"]
    return sums


def main():
    rtscope, scratch = sys.argv[1], Path(sys.argv[2])
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = run(rtscope, scratch, server.server_port)
    server.shutdown()
    assert len(received) >= 3, len(received)
    compared = 0
    for request in received:
        points = counts(request)
        [until_ns] = {until for _, _, until in points.values()}
        assert {start for _, start, _ in points.values()} == {lines[0]["begin_ns"]}
        # One that was sent as an interval closed has just what the store has until then.
        if any(line["end_ns"] == until_ns for line in lines):
            assert {key: count for key, (count, _, _) in points.items()} == stored(
                lines, until_ns
            )
            compared += 1
    assert compared >= 2, compared
    print(f"{len(received)} requests by OpenTelemetry's schema; {compared} with the store's counts")


if __name__ == "__main__":
    main()
