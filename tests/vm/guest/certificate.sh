# A certificate of this kernel under load, in virtual time: what a busy host takes is in none of its lengths.
. /lib/vm.sh

say "certificate"
# An evaluation says nothing of itself; a guest without progress counts as hung.
while sleep 5; do say "it goes on"; done &
beat=$!
rtscope measure eval --for 60s --load hackbench --budget 1ms --over 250us \
    --annotation "6.12-rt under emulation: one CPU, 2 ns of virtual time for each instruction" \
    -o /out/eval > /out/eval.txt 2> /out/eval.err
check "no sample is over the budget" test $? = 0
kill $beat
for file in eval.json eval.json.sha256 report.html junit.xml intervals.ndjson; do
    check "$file is there" test -s /out/eval/$file
done
# has PATTERN: in the object.
has() { grep -q "$1" /out/eval/eval.json; }
check "it went on until its end" has '"complete": true'
check "the load ran" has '"state": "ran"'
check "gaps were looked for" has '"schema": "rtscope.gaps"'
check "the kernel is named" has "\"kernel\": .*$(uname -r)"
cat /out/eval.txt /out/eval.err
