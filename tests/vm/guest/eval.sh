# An evaluation under load; its folder comes out, to be compared with another machine's.
. /lib/vm.sh

say "eval"
# An evaluation says nothing of itself; a guest without progress counts as hung.
while sleep 5; do say "it goes on"; done &
beat=$!
rtscope measure eval --for 20s --load hackbench --budget 1s -o /out/eval > /out/eval.txt 2> /out/eval.err
check "nobody is late by a second" test $? = 0
kill $beat
for file in eval.json report.html junit.xml; do
    check "$file is there" test -s /out/eval/$file
done
# has PATTERN: in the object.
has() { grep -q "$1" /out/eval/eval.json; }
check "it went on until its end" has '"complete": true'
check "the load ran" has '"state": "ran"'
check "gaps were looked for" has '"schema": "rtscope.gaps"'
rtscope measure eval --compare /out/eval /out/eval -o /out/both > /out/both.txt
check "two evaluations are compared" test -s /out/both/compare.html
cat /out/eval.txt /out/eval.err
