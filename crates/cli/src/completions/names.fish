# Names that the flags cannot know: those of tasks that run, of events that the kernel has.
function __rtscope_tasks
    cat /proc/*/task/*/comm 2>/dev/null | sed 's,^\(kworker/[^-+]*\).*,\1,' | sort -u
end

function __rtscope_events
    printf '%s\n' @SETS@
    sed 's/.*://' /sys/kernel/tracing/available_events 2>/dev/null
end

complete -c rtscope -n "__fish_rtscope_using_subcommand report" -a "list @REPORTS@"
