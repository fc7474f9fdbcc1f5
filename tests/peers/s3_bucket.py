#!/usr/bin/env python3
"""A bucket of the server at AWS_ENDPOINT_URL, for s3.sh.

usage: s3_bucket.py make BUCKET | empty BUCKET | compare BUCKET PREFIX FOLDER
"""

import sys
import time
from pathlib import Path

import boto3
from botocore.exceptions import EndpointConnectionError

MAKE_TRIES = 100


def make(s3, bucket):
    """The server may take a moment to listen."""
    for _ in range(MAKE_TRIES):
        try:
            return s3.create_bucket(Bucket=bucket)
        except EndpointConnectionError:
            time.sleep(0.1)
    sys.exit("the server does not listen")


def names(s3, bucket):
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def compare(s3, bucket, prefix, folder):
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    there = {name.removeprefix(prefix + "/"): name for name in names(s3, bucket)}
    if not files or sorted(files) != sorted(there):
        sys.exit(f"in the folder {sorted(files)}, in the bucket {sorted(there)}")
    for name, path in files.items():
        body = s3.get_object(Bucket=bucket, Key=there[name])["Body"].read()
        if body != path.read_bytes():
            sys.exit(f"{name} differs")
    print(f"{len(files)} files are equal")


def main(words):
    s3 = boto3.client("s3", region_name="us-east-1")
    match words:
        case ["make", bucket]:
            make(s3, bucket)
        case ["empty", bucket]:
            for name in names(s3, bucket):
                s3.delete_object(Bucket=bucket, Key=name)
        case ["compare", bucket, prefix, folder]:
            compare(s3, bucket, prefix, Path(folder))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
