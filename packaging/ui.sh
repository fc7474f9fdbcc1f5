#!/bin/sh
# Builds the page of `rtscope view` into ui/dist where Node.js is; cargo puts it into the program.
# Without Node.js, or without the registry of its packages, all else is built the same.
set -eu
cd "$(dirname "$0")/../ui"

without() { # what, fix
    printf 'note: %s: rtscope view will have its API and no page\n  fix:  %s\n' "$1" "$2" >&2
    exit 0
}

command -v node >/dev/null && command -v npm >/dev/null ||
    without "Node.js is not there" "apt-get install nodejs npm, then: make build"
node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' ||
    without "Node.js is too old ($(node --version))" "install Node.js 18 or later"

if ! cmp -s package-lock.json node_modules/.rtscope-lock; then
    npm ci --no-audit --no-fund --silent ||
        without "the packages of ui/package-lock.json could not be had" "go online, then: make ui"
    cp package-lock.json node_modules/.rtscope-lock
fi
npm run --silent check
npm run --silent build
