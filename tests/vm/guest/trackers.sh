# Every tracker loads on this kernel, or says what it lacks.
. /lib/vm.sh

loads() {
    rtscope watch "$1" --for 1s --rate 1/s > /out/tracker 2>&1
    cat /out/tracker
    grep -qE "^$1 +count|no hook for the tracker $1" /out/tracker
}
# Rows of the list begin with the name; what is not possible here has its reason below.
for tracker in $(rtscope watch list | sed -n 's/^\([a-z]\{1,\}\)  .*/\1/p'); do
    check "the tracker $tracker loads" loads "$tracker"
done
