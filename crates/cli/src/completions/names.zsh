# Names that the flags cannot know: those of reports, of tasks that run, of events that the kernel has.
_rtscope_tasks() {
    local -aU names
    names=(${(f)"$(cat /proc/<->/task/<->/comm(N) 2>/dev/null | sed 's,^\(kworker/[^-+]*\).*,\1,')"})
    compadd -a names
}

_rtscope_events() {
    local -aU names
    names=(@SETS@ ${(f)"$(sed 's/.*://' /sys/kernel/tracing/available_events 2>/dev/null)"})
    compadd -a names
}

_rtscope_reports() {
    _values -s , report list @REPORTS@ || _files
}

