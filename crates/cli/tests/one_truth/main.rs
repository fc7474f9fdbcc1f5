//! One recording tells every verb the same, and no number pretends to know: claims about generated
//! recordings whose truth is known, each under every kind of fault.
//!
//! `RTSCOPE_RECORDINGS=N` proves each claim on N new recordings.

mod adds_up;
mod agree;
mod answers;
mod calls;
mod cases;
mod clocks;
mod corpus;
mod damage;
mod fault;
mod handled;
mod known;
mod lives;
mod machine;
mod moved;
mod prove;
mod recording;
mod story;
mod truth;
mod unseen;
mod verdicts;
mod windows;

use fault::Fault;
use prove::holds;

/// A test for each claim under one fault.
macro_rules! under {
    ($module:ident, $fault:expr, $($file:ident::$claim:ident,)*) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $claim() {
                    let name = concat!(stringify!($module), "::", stringify!($claim));
                    holds(name, $fault, $file::$claim);
                }
            )*
        }
    };
}

/// Every claim that can be asked of any trace, under one fault.
macro_rules! all_claims {
    ($module:ident, $fault:expr, $($file:ident::$claim:ident,)*) => {
        under! {
            $module, $fault,
            adds_up::states_of_each_cpu_add_up_to_the_range,
            adds_up::states_of_each_thread_add_up_to_the_range,
            adds_up::a_cpu_is_busy_in_resources_when_it_is_in_states,
            adds_up::every_report_says_how_much_is_unknown,
            adds_up::threads_on_a_cpu_have_at_most_all_of_it_in_cputop,
            adds_up::a_cpu_that_idles_is_not_busy_in_cputop,
            agree::a_thread_has_the_same_time_in_cputop_and_states,
            agree::threads_run_as_long_as_their_cpus_in_states,
            agree::a_thread_waits_for_a_cpu_as_long_in_dependency_as_in_states,
            agree::diagnose_splits_the_waits_that_schedlog_lists,
            agree::counts_and_the_worst_wait_are_the_same_in_all_verbs,
            agree::check_counts_the_wakeups_that_schedstats_counts,
            windows::the_cpus_asked_one_by_one_add_up_to_all,
            known::no_thread_had_a_cpu_for_longer_than_in_truth,
            known::no_cpu_idled_or_was_interrupted_for_longer_than_in_truth,
            known::no_cpu_was_busy_for_longer_than_in_truth,
            known::every_wait_that_is_listed_is_a_true_one,
            known::nobody_is_said_to_have_had_the_cpu_who_did_not,
            verdicts::a_conclusive_verdict_names_the_largest_cause,
            verdicts::a_conclusive_verdict_is_about_a_true_wait,
            verdicts::nothing_was_late_is_said_only_where_nothing_was,
            verdicts::a_budget_is_held_or_broken_only_where_it_was,
            $($file::$claim,)*
        }
    };
}

/// Those too that ask where exactly events are missing.
macro_rules! all_claims_and_extents {
    ($module:ident, $fault:expr) => {
        all_claims! {
            $module, $fault,
            known::what_was_not_recorded_is_unknown,
            known::what_the_events_prove_is_known,
        }
    };
}

all_claims_and_extents!(in_a_complete_recording, Fault::None);
all_claims_and_extents!(where_the_kernel_hides_that_idle_ends, Fault::HiddenIdle);
all_claims_and_extents!(where_the_kernel_hides_a_task, Fault::HiddenTask);
all_claims_and_extents!(where_events_show_that_idle_ended, Fault::ShownIdle);
all_claims_and_extents!(where_events_show_a_task_that_is_hidden, Fault::ShownTask);
all_claims_and_extents!(where_events_of_one_cpu_are_lost, Fault::LostOnOne);
all_claims_and_extents!(where_events_of_all_cpus_are_lost, Fault::LostOnAll);
all_claims_and_extents!(where_the_events_of_a_cpu_begin_late, Fault::LateCpu);
all_claims! {
    where_running_tasks_are_moved, Fault::Moved,
    known::what_was_not_recorded_is_unknown,
    known::what_the_events_prove_is_known,
    known::every_wait_of_a_complete_recording_is_listed,
    known::no_thread_slept_for_longer_than_in_truth,
    known::no_thread_was_in_calls_for_longer_than_in_truth,
    known::no_thread_waited_for_a_cpu_for_longer_than_in_truth,
}
all_claims_and_extents!(where_all_events_begin_late, Fault::LateAll);
all_claims!(where_several_of_these_come_together, Fault::Several,);
all_claims!(where_bytes_are_damaged, Fault::Damaged,);

under! {
    where_a_window_is_asked_for, Fault::Window,
    adds_up::states_of_each_cpu_add_up_to_the_range,
    adds_up::states_of_each_thread_add_up_to_the_range,
    adds_up::a_cpu_is_busy_in_resources_when_it_is_in_states,
    adds_up::every_report_says_how_much_is_unknown,
    adds_up::threads_on_a_cpu_have_at_most_all_of_it_in_cputop,
    adds_up::a_cpu_that_idles_is_not_busy_in_cputop,
    agree::a_thread_has_the_same_time_in_cputop_and_states,
    agree::threads_run_as_long_as_their_cpus_in_states,
    agree::a_thread_waits_for_a_cpu_as_long_in_dependency_as_in_states,
    agree::diagnose_splits_the_waits_that_schedlog_lists,
    agree::counts_and_the_worst_wait_are_the_same_in_all_verbs,
    agree::check_counts_the_wakeups_that_schedstats_counts,
    known::no_thread_had_a_cpu_for_longer_than_in_truth,
    known::no_cpu_idled_or_was_interrupted_for_longer_than_in_truth,
    known::no_cpu_was_busy_for_longer_than_in_truth,
    known::no_thread_waited_for_a_cpu_for_longer_than_in_truth,
    known::no_thread_slept_for_longer_than_in_truth,
    known::no_thread_was_in_calls_for_longer_than_in_truth,
    known::every_wait_that_is_listed_is_a_true_one,
    known::nobody_is_said_to_have_had_the_cpu_who_did_not,
    windows::the_cpus_asked_one_by_one_add_up_to_all,
    windows::windows_that_touch_add_up_to_all,
    verdicts::a_conclusive_verdict_names_the_largest_cause,
    verdicts::a_conclusive_verdict_is_about_a_true_wait,
    verdicts::nothing_was_late_is_said_only_where_nothing_was,
    verdicts::a_budget_is_held_or_broken_only_where_it_was,
}

/// Before a CPU's events begin, tasks that it wakes seem to sleep, and to be in their calls: not
/// asked there.
macro_rules! wait_sleep_and_call {
    ($($module:ident: $fault:expr,)*) => {
        wait_sleep_and_call! { no_thread_slept_for_longer_than_in_truth, $($module: $fault,)* }
        wait_sleep_and_call! {
            no_thread_waited_for_a_cpu_for_longer_than_in_truth, $($module: $fault,)*
        }
        wait_sleep_and_call! {
            no_thread_was_in_calls_for_longer_than_in_truth, $($module: $fault,)*
        }
    };
    ($claim:ident, $($module:ident: $fault:expr,)*) => {
        mod $claim {
            use super::*;
            $(
                #[test]
                fn $module() {
                    let name = concat!(stringify!($claim), "::", stringify!($module));
                    holds(name, $fault, known::$claim);
                }
            )*
        }
    };
}

wait_sleep_and_call! {
    in_a_complete_recording: Fault::None,
    where_the_kernel_hides_that_idle_ends: Fault::HiddenIdle,
    where_the_kernel_hides_a_task: Fault::HiddenTask,
    where_events_show_that_idle_ended: Fault::ShownIdle,
    where_events_show_a_task_that_is_hidden: Fault::ShownTask,
    where_events_of_one_cpu_are_lost: Fault::LostOnOne,
    where_events_of_all_cpus_are_lost: Fault::LostOnAll,
    where_bytes_are_damaged: Fault::Damaged,
}

#[test]
fn every_wait_of_a_complete_recording_is_listed() {
    holds(
        "every_wait_of_a_complete_recording_is_listed",
        Fault::None,
        known::every_wait_of_a_complete_recording_is_listed,
    );
}

#[test]
fn what_perf_recorded_says_what_lttng_says() {
    holds(
        "what_perf_recorded_says_what_lttng_says",
        Fault::None,
        agree::what_perf_recorded_says_what_lttng_says,
    );
}

#[test]
fn a_wake_up_event_that_never_happens_changes_nothing() {
    holds(
        "a_wake_up_event_that_never_happens_changes_nothing",
        Fault::None,
        agree::a_wake_up_event_that_never_happens_changes_nothing,
    );
}
