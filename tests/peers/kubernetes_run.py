"""Runs the container of the example for Kubernetes as the example says, with its rights, mounts and
read-only root, and asks what it counts.

usage: kubernetes_run.py EXAMPLE ROOT SCRATCH RTSCOPE
"""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

TOKEN = "a-token-of-16-letters"
STARTS_MAX_S = 60


def mounted(spec, settings, scratch):
    """Where the volumes lie: what a cluster would fill in is filled in here."""
    folders = {}
    for volume in spec["volumes"]:
        name = volume["name"]
        folder = scratch / name
        folder.mkdir(mode=0o755)
        if "configMap" in volume:
            for file, text in settings.items():
                (folder / file).write_text(text)
        elif "secret" in volume:
            (folder / "token").write_text(TOKEN)
            (folder / "token").chmod(volume["secret"]["defaultMode"])
        elif volume["hostPath"]["type"] == "Directory":
            folder = Path(volume["hostPath"]["path"])
        folders[name] = folder
    return folders


def words(daemon, settings, root, scratch):
    """What runs the container as a cluster does, and where the store lies."""
    spec = daemon["spec"]["template"]["spec"]
    [container] = spec["containers"]
    rights = container["securityContext"]
    assert spec["hostPID"] and spec["hostNetwork"], "no namespaces of these are made here"
    assert rights["capabilities"]["drop"] == ["ALL"] and rights["runAsUser"] == 0, rights
    folders = mounted(spec, settings, scratch)
    script = ["set -e", f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
    script += [f"mount -t sysfs -o ro sysfs {root}/sys"]
    for mount in container["volumeMounts"]:
        place = f"{root}{mount['mountPath']}"
        script += [f"mount --bind {folders[mount['name']]} {place}"]
        script += [f"mount -o remount,bind,ro {place}"] if mount.get("readOnly") else []
    script += [f"mount -o remount,bind,ro {root}"] if rights["readOnlyRootFilesystem"] else []
    kept = "".join(f",+{name.lower()}" for name in rights["capabilities"]["add"])
    limited = f"--bounding-set=-all{kept} --inh-caps=-all{kept}"
    limited += "" if rights["allowPrivilegeEscalation"] else " --no-new-privs"
    program = " ".join(["/usr/bin/rtscope", *container["args"]])
    script += [f"exec chroot {root} /usr/bin/setpriv {limited} {program}"]
    asked = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(script)]
    return asked, folders["store"] / "monitor.db"


def metrics(port, token):
    """The answer's status and text; none before it listens."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return None


def until_counted(running, port):
    """The metrics, once there are any of an interval."""
    begun = time.monotonic()
    while time.monotonic() - begun < STARTS_MAX_S:
        assert running.poll() is None, running.communicate()
        found = metrics(port, TOKEN)
        if found and "rtscope_monitor_intervals_total 2" in found[1]:
            return found[1]
        time.sleep(0.5)
    sys.exit(f"nothing was counted for {STARTS_MAX_S} s")


def main():
    example, root, scratch, rtscope = sys.argv[1:5]
    documents = {one["kind"]: one for one in yaml.safe_load_all(open(example, encoding="utf-8"))}
    daemon = documents["DaemonSet"]
    [container] = daemon["spec"]["template"]["spec"]["containers"]
    port = container["ports"][0]["containerPort"]
    # The example's settings, with intervals that end while somebody waits, of every task.
    settings = documents["ConfigMap"]["data"]
    settings = {
        file: text.replace('"5m"', '"2s"\nall = true') for file, text in settings.items()
    }
    asked, store = words(daemon, settings, root, Path(scratch))
    running = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        text = until_counted(running, port)
        assert 'rtscope_phase_seconds_count{scope="all",phase="switch"}' in text, text
        assert metrics(port, None)[0] == 401, "who has no token is refused"
    finally:
        # As a cluster ends it.
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=30)
    assert running.returncode == 0, said
    assert "closed" in said[1], said
    report = [rtscope, "monitor", "report", "--store", store]
    report = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    assert "intervals from" in report, report
    print("ok: what the example asks for is allowed, and it counts:", report.splitlines()[0])


if __name__ == "__main__":
    main()
