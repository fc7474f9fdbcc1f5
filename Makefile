# One command for each thing that people do here. `make demo` and `make test` install what is missing.

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
RTSCOPE := $(TARGET_DIR)/release/rtscope
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: build demo test test-vm test-all check bench install clean deps

build: deps
	cargo build --release --package cli

deps:
	@packaging/deps.sh build

# The published experiment where jackd can be had, else a victim and a hog of our own.
demo:
	@packaging/deps.sh demo
	cargo build --release --package cli
	@packaging/tracefs.sh
	@if command -v jackd >/dev/null; then \
	    $(RTSCOPE) demo jack; \
	else \
	    echo "jackd cannot be had here: showing 'rtscope demo hog' instead" >&2; \
	    $(RTSCOPE) demo hog; \
	fi

test:
	@packaging/deps.sh test
	@packaging/tracefs.sh
	cargo xtask test

# Other kernels under an emulator, with faults whose truth is known.
test-vm:
	@packaging/deps.sh vm
	cargo xtask vm run

test-all:
	@packaging/deps.sh test
	@packaging/tracefs.sh
	cargo xtask test --all
	cargo xtask fuzz --minutes 1
	cargo xtask fuzz --minutes 1 --sanitizer
	cargo build --release --package cli
	cargo xtask lock tests/peers/lttng_analyses.sh $(RTSCOPE)
	cargo xtask lock tests/peers/perfetto.sh $(RTSCOPE)

check: deps
	cargo xtask check

# Every figure of docs/benchmarks.md, in its form; wants a quiet machine.
bench:
	@packaging/deps.sh bench
	@packaging/tracefs.sh
	cargo build --release --package cli --package bench
	cargo xtask lock $(TARGET_DIR)/release/bench all

install: build
	install -D -m 755 $(RTSCOPE) $(DESTDIR)$(PREFIX)/bin/rtscope
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RTSCOPE) --generate man > $(DESTDIR)$(PREFIX)/share/man/man1/rtscope.1
	$(RTSCOPE) --generate bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rtscope
	$(RTSCOPE) --generate zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rtscope
	$(RTSCOPE) --generate fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rtscope.fish

clean:
	cargo clean
