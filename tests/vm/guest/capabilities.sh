# The host's own end-to-end test of what doctor says with fewer and fewer capabilities, here.
. /lib/vm.sh

mkdir -p /run/lock
chmod 1777 /tmp
export RTSCOPE_PROGRAM=/bin/rtscope RTSCOPE_SKIPS=/out/skips
(while sleep 20; do say "still at it"; done) &
progress=$!
check "what doctor says is what happens" root_capabilities --test-threads=1
kill $progress
touch /out/skips
cat /out/skips
check "nothing was skipped" test ! -s /out/skips
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
