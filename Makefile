# One command for each thing that people do here. `make demo` and `make test` install what is missing.

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# Of Cargo.toml: packages are built by `dist`, which is smaller and takes longer to build.
PROFILE ?= release
# Another machine than this one, as in TARGET=aarch64-unknown-linux-gnu.
TARGET ?=
BUILT = $(TARGET_DIR)$(if $(TARGET),/$(TARGET))/$(PROFILE)
CARGO_BUILD = cargo build --profile $(PROFILE) $(if $(TARGET),--target $(TARGET))
RTSCOPE = $(BUILT)/rtscope
PREFIX ?= /usr/local
DESTDIR ?=
# Debug information lies apart, where debuggers and profilers look; packages do that by themselves.
STRIP ?= yes
SYSCONFDIR ?= /etc
SETTINGS := $(DESTDIR)$(SYSCONFDIR)/rtscope/monitor.toml
DEBUG_FILE := $(DESTDIR)$(PREFIX)/bin/.debug/rtscope.debug

# Libraries in C are built by a make of their own below cargo: words of this one's command line, DESTDIR
# above all, would be that one's too.
unexport MAKEFLAGS

.PHONY: build ui demo test test-vm test-all check bench install uninstall install-library packages \
        check-packages static book licences wheel clean deps

build: deps ui
	$(CARGO_BUILD) --package cli

deps:
	@packaging/deps.sh build

# The page of 'rtscope view', where Node.js is.
ui:
	@packaging/ui.sh

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

test: ui
	@packaging/deps.sh test
	@packaging/tracefs.sh
	cargo xtask test

# Other kernels under an emulator, with faults whose truth is known.
test-vm:
	@packaging/deps.sh vm
	cargo xtask vm run

test-all: ui
	@packaging/deps.sh test
	@packaging/tracefs.sh
	cargo xtask test --all
	RTSCOPE_FUZZ_COMBINATIONS=10000 cargo test --package ring --test fuzzed
	cargo xtask fuzz --minutes 1
	cargo xtask fuzz --minutes 1 --sanitizer
	cargo build --release --package cli
	cargo xtask lock tests/peers/lttng_analyses.sh $(RTSCOPE)
	cargo xtask lock tests/peers/perfetto.sh $(RTSCOPE)
	cargo xtask lock tests/peers/trace_processor.sh $(RTSCOPE)
	cargo xtask lock tests/peers/babeltrace2_ctf2.sh $(RTSCOPE)
	cargo xtask lock tests/peers/two_hosts.py $(RTSCOPE)
	cargo build --release --package fleet --example generate
	tests/peers/fleet.sh $(TARGET_DIR)/release/examples/generate
	cargo xtask lock tests/peers/otlp.sh $(RTSCOPE)
	cargo xtask lock tests/peers/kubernetes.sh $(RTSCOPE)
	RTSCOPE_MONITOR_KILLS=200 RTSCOPE_MONITOR_DAYS=90 \
		cargo test --release --package monitor --test writer_killed
	cargo xtask lock tests/peers/s3.sh $(RTSCOPE)
	cargo build --release --package cli --features arrow --target-dir $(TARGET_DIR)/arrow
	cargo xtask lock tests/peers/duckdb.sh $(TARGET_DIR)/arrow/release/rtscope

check: deps
	cargo xtask check

# Every figure of docs/benchmarks.md, in its form; wants a quiet machine. BENCH=engine: some of it.
BENCH ?= all
bench:
	@packaging/deps.sh bench
	@packaging/tracefs.sh
	cargo build --release --package cli --package bench --package python
	cargo xtask lock $(TARGET_DIR)/release/bench $(BENCH)

install: build
	install -D -m 755 $(RTSCOPE) $(DESTDIR)$(PREFIX)/bin/rtscope
	@if [ "$(STRIP)" = yes ]; then \
	    install -d $(dir $(DEBUG_FILE)); \
	    objcopy --only-keep-debug $(RTSCOPE) $(DEBUG_FILE) && chmod 644 $(DEBUG_FILE) && \
	    objcopy --strip-debug --add-gnu-debuglink=$(DEBUG_FILE) $(DESTDIR)$(PREFIX)/bin/rtscope; \
	fi
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RTSCOPE) --generate man > $(DESTDIR)$(PREFIX)/share/man/man1/rtscope.1
	$(RTSCOPE) --generate bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rtscope
	$(RTSCOPE) --generate zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rtscope
	$(RTSCOPE) --generate fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rtscope.fish

	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,/usr/bin/rtscope,$(PREFIX)/bin/rtscope,' packaging/systemd/rtscope-monitor.service \
	    > $(DESTDIR)$(PREFIX)/lib/systemd/system/rtscope-monitor.service
	@[ -e $(SETTINGS) ] || install -D -m 644 packaging/systemd/monitor.toml $(SETTINGS)

# What `install` and `install-library` put there; traces, snapshots, caches and settings
# that were changed stay.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/rtscope $(DEBUG_FILE) \
	    $(DESTDIR)$(PREFIX)/share/man/man1/rtscope.1 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rtscope \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rtscope \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rtscope.fish \
	    $(DESTDIR)$(PREFIX)/lib/librtscope.so $(DESTDIR)$(PREFIX)/lib/librtscope.so.1 \
	    $(DESTDIR)$(PREFIX)/lib/librtscope.a $(DESTDIR)$(PREFIX)/lib/pkgconfig/rtscope.pc \
	    $(DESTDIR)$(PREFIX)/lib/systemd/system/rtscope-monitor.service \
	    $(DESTDIR)$(PREFIX)/include/rtscope.h $(DESTDIR)$(PREFIX)/include/rtscope.hpp \
	    $(DESTDIR)$(PREFIX)/include/rtscope/track.bpf.h \
	    $(DESTDIR)$(PREFIX)/include/rtscope/action.bpf.h
	rm -rf $(DESTDIR)$(PREFIX)/lib/cmake/rtscope
	! cmp -s packaging/systemd/monitor.toml $(SETTINGS) || rm -f $(SETTINGS)
	for folder in $(dir $(SETTINGS)) $(dir $(DEBUG_FILE)); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder; \
	done

# The trace engine for C and C++; docs/library.md says how to use it.
install-library: deps
	$(CARGO_BUILD) --package capi
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 755 $(BUILT)/librtscope.so $(DESTDIR)$(PREFIX)/lib/librtscope.so.1
	ln -sf librtscope.so.1 $(DESTDIR)$(PREFIX)/lib/librtscope.so
	install -m 644 $(BUILT)/librtscope.a $(DESTDIR)$(PREFIX)/lib/librtscope.a
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include \
	    crates/capi/include/rtscope.h crates/capi/include/rtscope.hpp
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/rtscope \
	    bpf/include/rtscope/track.bpf.h bpf/include/rtscope/action.bpf.h
	packaging/pkg-config.sh $(PREFIX) > $(DESTDIR)$(PREFIX)/lib/pkgconfig/rtscope.pc
	install -d $(DESTDIR)$(PREFIX)/lib/cmake/rtscope
	packaging/cmake-config.sh rtscope > $(DESTDIR)$(PREFIX)/lib/cmake/rtscope/rtscope-config.cmake
	packaging/cmake-config.sh rtscope version \
	    > $(DESTDIR)$(PREFIX)/lib/cmake/rtscope/rtscope-config-version.cmake

# The program without any shared library, for every distribution. The target may be another one
# that the toolchain has, as in STATIC_TARGET=x86_64-unknown-linux-musl. Only the last step is told
# of it: the crates are those of the other program.
STATIC_TARGET ?= $(shell rustc --print host-tuple)
STATIC_DIR ?= $(TARGET_DIR)/static
STATIC_FLAGS ?=
static: deps ui
	LIBBPF_SYS_LIBRARY_PATH=/usr/lib/$$(cc -dumpmachine) \
	    cargo rustc --profile $(PROFILE) --package cli --bin rtscope --features static \
	    --target $(STATIC_TARGET) --target-dir $(STATIC_DIR) -- \
	    -C target-feature=+crt-static $(STATIC_FLAGS)

# Packages of all that is installed, into target/packages: .deb, .rpm, tarballs, an OCI image, the
# wheel. What cannot be built here says why, and the others are built all the same.
packages: deps ui
	@packaging/deps.sh packages
	packaging/build.sh $(TARGET_DIR)

# Each package as its users have it: in a fresh root, over an older one, removed.
check-packages:
	@packaging/deps.sh packages
	cargo xtask lock packaging/check.sh $(TARGET_DIR)/packages
	packaging/check-plain.sh $(TARGET_DIR)/packages

# What is linked, and whether its licences and origins are ones that we take (deny.toml).
licences: deps
	@packaging/deps.sh licences
	PATH="$$HOME/.cargo/bin:$$PATH" cargo deny --locked check licenses bans sources
	@mkdir -p $(TARGET_DIR)/packages
	packaging/sbom.py cyclonedx cli > $(TARGET_DIR)/packages/rtscope.cdx.json
	packaging/sbom.py cyclonedx capi > $(TARGET_DIR)/packages/librtscope.cdx.json

# The pages as a book with a search, in target/book.
book:
	@packaging/deps.sh book
	PATH="$$HOME/.cargo/bin:$$PATH" packaging/book.py $(TARGET_DIR)/book

# The trace engine for Python, one wheel for all versions.
wheel: deps
	packaging/wheel.sh $(TARGET_DIR)

clean:
	cargo clean
