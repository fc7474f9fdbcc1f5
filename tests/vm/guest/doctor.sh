# Every verb that doctor calls possible works here, and leaves nothing behind.
. /lib/vm.sh

clean() { [ -z "$(ls /sys/kernel/tracing/instances)$(ls /dev/shm)" ]; }

check "doctor ends well" rtscope doctor
rtscope doctor --json > /out/doctor.json
check "a recording ends well" rtscope record --events all --duration 300ms -o /out/recording
check "a recording can be printed" sh -c "rtscope cat /out/recording > /out/recording.txt"
check "a recording holds events" test "$(wc -l < /out/recording.txt)" -gt 100
check "a recording leaves nothing behind" clean

rtscope watch --over 1ms --for 2s --json -o /out/snapshots > /out/watch.json
status=$?
# 2 says that the threshold was exceeded, which emulation does now and then.
check "a watch of all real-time tasks ends well" [ $status = 0 -o $status = 2 ]
check "a watch tells how it ended" grep -q '"type":"end"' /out/watch.json
check "a watch leaves nothing behind" clean

say "demo hog"
(cd /out && rtscope demo hog > demo.txt 2>&1)
status=$?
check "demo hog ends well" [ $status = 0 -o $status = 2 ]
cat /out/demo.txt
check "the demo leaves nothing behind" clean
