# What the guests' scripts share. stdout and stderr go to /out/log, progress to the console.

# say TEXT: progress; a guest without any for two minutes counts as hung.
say() { echo "rtscope-vm: $(cut -d' ' -f1 /proc/uptime) $*" > /dev/console; echo "== $*"; }

# check CLAIM COMMAND...: the claim holds when the command succeeds.
check() {
    claim=$1; shift
    if "$@"; then verdict=ok; else verdict="not ok"; fi
    echo "$verdict $claim" >> /out/checks
    say "$verdict $claim"
}

# inject KIND FUNCTION LENGTH_us CPU: one fault of the kernel module; returns when it is over.
inject() { echo "$*" > /dev/rtscope-inject; }

# stall AFTER_ms LENGTH_ms: has the emulator stopped, so long after it reads this.
stall() { say "stall $1 $2"; }
