"""An OCI image of the static program, written by hand: a layer, a configuration, an index."""

import hashlib
import io
import json
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from common import archived, epoch, squeezed, version

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEDIA = "application/vnd.oci.image"


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Blobs:
    """What the image consists of, each part under its digest."""

    def __init__(self, folder):
        self.folder = folder / "blobs/sha256"
        self.folder.mkdir(parents=True)

    def add(self, data, kind):
        """Keeps a part; how others name it."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / digest).write_bytes(data)
        return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}


def image(tree, machine, output):
    """Writes the image of what `tree` holds as an archive that podman, docker and skopeo load."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        blobs = Blobs(folder)
        layer = io.BytesIO()
        archived([(path, str(path.relative_to(tree))) for path in sorted(tree.rglob("*"))], layer)
        layer = layer.getvalue()
        when = datetime.fromtimestamp(epoch(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        configuration = {
            "created": when, "architecture": ARCHITECTURES[machine], "os": "linux",
            "config": {
                "Entrypoint": ["/usr/bin/rtscope"], "WorkingDir": "/work", "Env": ["PATH=/usr/bin"],
                "Labels": {
                    "org.opencontainers.image.title": "rtscope",
                    "org.opencontainers.image.version": version(),
                    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                },
            },
            "rootfs": {
                "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]
            },
            "history": [{"created": when, "created_by": "packaging/oci_image.py"}],
        }
        manifest = {
            "schemaVersion": 2, "mediaType": f"{MEDIA}.manifest.v1+json",
            "config": blobs.add(text(configuration), "config.v1+json"),
            "layers": [blobs.add(squeezed(layer), "layer.v1.tar+gzip")],
        }
        listed = blobs.add(text(manifest), "manifest.v1+json")
        listed["annotations"] = {"org.opencontainers.image.ref.name": f"rtscope:{version()}"}
        index = {"schemaVersion": 2, "manifests": [listed]}
        (folder / "index.json").write_bytes(text(index))
        (folder / "oci-layout").write_bytes(text({"imageLayoutVersion": "1.0.0"}))
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        name = output / f"rtscope-{version()}-{machine}-oci.tar"
        with open(name, "wb") as file:
            archived([(p, str(p.relative_to(folder))) for p in sorted(folder.rglob("*"))], file)
    return name
