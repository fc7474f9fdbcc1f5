
# Names that the flags cannot know: those of reports, of tasks that run, of events that the kernel has.
_rtscope_lines() { # what is typed: of the lines on stdin those that begin so, quoted
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ "$line" == "$1"* ]] || continue
        [[ "$line" != *[!A-Za-z0-9_./:,@+-]* ]] || line="$(printf %q "$line")"
        COMPREPLY+=("$line")
    done
}

_rtscope_named() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD - 1]}" before
    # Of --task=NAME the shell makes three words.
    if [[ "$cur" == = ]]; then
        cur=
    elif [[ "$prev" == = ]]; then
        prev="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    case "$prev" in
    --task | --process | --procname)
        # Of a deadline to be measured it is a text of three times.
        if [[ "${COMP_WORDS[2]}" != deadline ]]; then
            # Of a worker the kernel shows there what it does too, which is no part of its name.
            _rtscope_lines "$cur" < <(
                cat /proc/[0-9]*/task/[0-9]*/comm 2>/dev/null | sed 's,^\(kworker/[^-+]*\).*,\1,' | sort -u
            )
            return
        fi
        ;;
    --events)
        _rtscope_lines "$cur" < <(
            printf '%s\n' @SETS@
            sed 's/.*://' /sys/kernel/tracing/available_events 2>/dev/null
        )
        return
        ;;
    report)
        if [[ "$COMP_CWORD" == 2 && "$cur" != -* ]]; then
            # With commas between: what stands before the last one stays.
            before="${cur%"${cur##*,}"}"
            _rtscope_lines "$cur" < <(printf "$before%s\n" list @REPORTS@)
            # A path of another program, or a monitor's store.
            [[ ${#COMPREPLY[@]} != 0 ]] || COMPREPLY=($(compgen -f -- "$cur"))
            return
        fi
        ;;
    esac
    _rtscope "$@"
}

complete -F _rtscope_named -o bashdefault -o default rtscope
