/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the library share with each other and with nobody else. */
#ifndef RTSCOPE_INTERNAL_H
#define RTSCOPE_INTERNAL_H

/* Linked statically, this library is a part of a program that may want no constructor. */
#ifndef RTSCOPE_NO_CONSTRUCTOR
#define RTSCOPE_NO_CONSTRUCTOR
#endif
#include <rtscope/detail/record.h>
#include <stddef.h>
#include <stdint.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A program's own function of the same name stays its own, also where the library is preloaded. */
#pragma GCC visibility push(hidden)

/* Room for so many bytes of switches and descriptions beside those that are there when the file is
 * made; sparse until it is needed. A process that locks all its memory pays for the addresses. */
#define RTSCOPE_SWITCHES_BYTES ((size_t)1 << 20)
#define RTSCOPE_FILTERS_BYTES ((size_t)256 << 10)
#define RTSCOPE_OBJECTS_BYTES ((size_t)512 << 10)
#define RTSCOPE_TABLE_BYTES ((size_t)1 << 20)
#define RTSCOPE_PATH_MAX 256
/* A directory's path leaves room for the names of files in it. */
#define RTSCOPE_DIRECTORY_MAX 192
/* All patterns of sessions, or those of the environment: of as many as there are, a desk each. */
#define RTSCOPE_RULES_BYTES (8 * 4096)
/* Of variables of the environment, one each. */
#define RTSCOPE_COMPLAINTS_MAX 8

/* Where functions put down what is large and soon done with, under the lock of register.c: all of a
 * program's stack may be two pages. Who is called meanwhile uses it too. */
#define RTSCOPE_DESK_BYTES 4096
extern char rtscope_desk[RTSCOPE_DESK_BYTES];

/* Why there is no such event, or what else a recorder is to tell: what is missing (a name follows),
 * what was found (and the text that it ends with), what fixes it. */
struct rtscope_refusal {
    const char *what;
    const char *found;
    const char *text;
    const char *fix;
};

/* What a recorder asks of its rings, in bytes for each CPU; 0: nothing. */
struct rtscope_ring_rules {
    /* So many, whatever it costs. */
    uint64_t exactly;
    /* So many where there is room. */
    uint64_t at_most;
    /* So many for those of all processes together, of which the next takes a part. */
    uint64_t in_all;
    /* So much memory for the files of all processes in a folder, whoever asked for their size. */
    uint64_t per_user;
};

/* A set of rings, before the file is made. */
struct rtscope_set_plan {
    /* The recorder whose it is; 0: nobody's. */
    uint64_t session;
    struct rtscope_ring_rules rings;
    /* Whether it wants an event that is there when the file is made. */
    int is_wanted;
    /* 0: they get their size later, and have addresses for `room_bytes` each. */
    uint64_t ring_bytes;
    uint64_t subbuffer_bytes;
    uint64_t room_bytes;
};

/* How the process wants its rings, from the environment, and what recorders ask for. */
struct rtscope_settings {
    /* Patterns that are enabled at the start, or NULL. */
    const char *events;
    /* The directory, or NULL for the usual one. */
    const char *directory;
    /* Of the environment; 0 where it says nothing. */
    uint64_t ring_bytes_asked;
    uint64_t subbuffers;
    struct rtscope_set_plan sets[RTSCOPE_SETS_MAX];
    uint32_t sets_length;
    /* Whether there is room for no more sets than recorders have. */
    int has_no_spare_sets;
    /* Whether rings that nobody needs yet have addresses of no more than a small size. */
    int has_no_room;
    /* Why there can be no file (errno), or 0. */
    int refused;
    /* Whether somebody wants an event that is there when the file is made. */
    int is_wanted;
    uint32_t mode;
    uint32_t clock;
    uint32_t block_ns;
    int rseq;
    int disabled;
    /* What rings may take of memory, when the file is made. */
    uint64_t memory_left;
    /* Addresses of a file before, which go when there is another. */
    uint64_t leaving_bytes;
    int huge_pages;
    /* Bytes of switches and of descriptions that the process has already. */
    uint64_t switches_bytes;
    uint64_t table_bytes;
    /* Variables that are not followed. */
    struct rtscope_refusal complaints[RTSCOPE_COMPLAINTS_MAX];
    unsigned complaints_length;
};

/* The shared file of this process, mapped as a whole; no descriptor stays open. */
struct rtscope_file {
    struct rtscope_header *header;
    /* Addresses of the mapping: the file ends before where rings have no size yet. */
    uint64_t map_bytes;
    /* Why CPUs that are online have no ring (errno), or 0. */
    int missing_rings;
    /* Without a file: the process for which `path` is a link that tells why; else 0. */
    int refused_pid;
    /* That link is not in the directory of the settings, which cannot be used. */
    int is_refused_elsewhere;
    char path[RTSCOPE_PATH_MAX];
};

/* environment.c */
void rtscope_settings_read(struct rtscope_settings *settings);
/* A number with K, M or G, of the largest ring at most; `otherwise` when it is none. */
uint64_t rtscope_size(const char *text, uint64_t otherwise);

/* room.c: bytes that the machine, and the control groups of the process, have left for it. */
uint64_t rtscope_memory_left(void);
/* Bytes that are free in the file system of `folder`. */
uint64_t rtscope_shared_left(int folder);
/* A file of rings with more than `small` beyond its first `beside` bytes counts as large as it will
 * be, `large` at most; others by the memory that they have. */
struct rtscope_sizes {
    uint64_t beside;
    uint64_t small;
    uint64_t large;
};
/* Bytes that the rings of all processes in `folder` take; it looks no further than to `most`. */
uint64_t rtscope_rings_bytes(int folder, const struct rtscope_sizes *sizes, uint64_t most);
/* What is left in `folder` of so much memory for all files of rings. */
uint64_t rtscope_left_of_user(int folder, uint64_t most);

/* settings.c */
/* Reads a small file into `text`; returns its length, or -1. */
long rtscope_read_small(const char *path, char *text, size_t size);
uint64_t rtscope_power_of_two(uint64_t number);
uint32_t rtscope_best_clock(void);
/* How far CLOCK_MONOTONIC is ahead of the machine's in the time namespace of this process. */
int64_t rtscope_time_namespace_ns(void);
/* Decides how large the rings are in `folder`, and how many sets of them there are. */
void rtscope_settings_size(struct rtscope_settings *settings, int folder);
/* Where nobody asked for so many sets, or rings of that size, and fewer or smaller ones may do:
 * asks for those (1). */
int rtscope_settings_ask_less(struct rtscope_settings *settings);
/* The size for the rings of a set that its recorder, or the environment, asks for by now, as far as
 * there are addresses; 0 where the process has no memory for them. */
uint64_t rtscope_settings_choose(struct rtscope_settings *settings, uint32_t place, int folder);
/* The bytes of a sub-buffer of rings of a size. */
uint64_t rtscope_subbuffer_bytes(uint64_t ring_bytes, uint64_t subbuffers);
/* Whether rings get their memory when the file is made: somebody wants their events, or they are
 * larger than those that nobody asked for, which no recorder gives memory. */
int rtscope_set_takes_memory(const struct rtscope_set_plan *set);
uint32_t rtscope_cpus_possible(void);
/* Calls `each` for every online CPU. */
void rtscope_cpus_online(void (*each)(uint32_t cpu, void *context), void *context);

/* linked.c: which calls the program and its libraries are linked with; in a child of fork, what its
 * parent found. */
#define RTSCOPE_CALLS_MLOCKALL 1u
#define RTSCOPE_CALLS_SECCOMP 2u
/* Nobody sees what it calls: it is linked statically, or very large. */
#define RTSCOPE_CALLS_UNSEEN 4u
unsigned rtscope_calls(void);
/* What the last look found. */
unsigned rtscope_calls_known(void);
/* At the end of the process: whether it may have forbidden itself system calls, so that any of ours
 * would end it. Takes none itself. */
int rtscope_may_be_confined(void);

/* locks.c: how many bytes of addresses a process may still take that wants to lock all that it has,
 * when it has given `leaving` back; UINT64_MAX where that is no concern, or where it may take
 * `enough`. */
uint64_t rtscope_lockable_bytes(uint64_t enough, uint64_t leaving);
/* Whether addresses without memory may do the process harm: it may lock all that it has (one that
 * is linked statically may call what nobody sees), or has a limit of addresses. */
int rtscope_minds_addresses(void);

/* file.c; functions return 0, or -1 when it cannot be done. */
int rtscope_file_create(struct rtscope_file *file, struct rtscope_settings *settings,
                        uint32_t rseq);
/* What the header says of a set; `place` is below `sets_length`. */
struct rtscope_set rtscope_set_of(const struct rtscope_header *header, uint32_t place);
/* The first ring of a set. */
struct rtscope_ring *rtscope_rings_of(const struct rtscope_header *header, uint32_t place);
/* Opens the directory that it is in; -1 where that is gone. */
int rtscope_file_folder(const struct rtscope_file *file);
/* Gives the rings of a set, of CPUs that are online, their memory in the file, where they have
 * none, and where all files of the folder then take no more than `per_user` (0: as much as they
 * like). */
void rtscope_file_give(struct rtscope_file *file, uint32_t set, uint64_t per_user);
/* Makes pages of the rings this process's, so much of each, so that no event waits for them. */
void rtscope_file_warm(const struct rtscope_file *file, uint32_t set, uint64_t bytes);
/* Gives pages of the file memory now, so that no store can fail later. */
int rtscope_file_populate(const struct rtscope_file *file, uint64_t offset, uint64_t bytes);
/* Maps a part of the file at `where`, over what is there. */
int rtscope_file_map(const struct rtscope_file *file, uint64_t offset, uint64_t bytes, void *where);
/* Whether somebody gave the rings memory: from then on they are written to. */
int rtscope_file_has_memory(const struct rtscope_file *file);
/* Whether anything was recorded, or still may be by what `switches_bytes` of switches say. */
int rtscope_file_in_use(const struct rtscope_file *file, uint64_t switches_bytes);
/* At the process's end: removes its file, unless a recorder wants it, and what children left that
 * ran another program. */
void rtscope_file_end(const struct rtscope_file *file, int is_wanted);
/* Drops the mapping; the file stays. */
void rtscope_file_unmap(struct rtscope_file *file);
/* The directory of `settings`; -1 when it is not there or not to be trusted. */
int rtscope_directory_open(const char *path, int create);
int rtscope_directory_path(const char *wanted, unsigned uid, char *path, size_t size);

/* sections.c */

/* A place with an event in a program or library. */
struct rtscope_site {
    const char *text;
    uint32_t text_bytes;
    /* In the section of switches. */
    uint64_t switch_offset;
    uint64_t code_address;
};
/* Calls `each` for every site, or nothing when it is NULL; -1 where what lies there is none. */
int rtscope_sections_each(const struct rtscope_sections_ *sections,
                          void (*each)(const struct rtscope_site *site, void *context),
                          void *context);
/* Whether the sections can be walked to their ends. */
int rtscope_sections_fit(const struct rtscope_sections_ *sections);

struct rtscope_description {
    const char *text;
    size_t text_bytes;
    /* Whether a compiler laid it down: a digit then stands before the name, and goes. */
    int is_site;
    /* Found by the check; never NULL behind it. */
    const char *provider;
    const char *name;
    /* Where that digit is; 0 where there is none. */
    size_t left_out;
};
/* Whether recorders understand the description of an event (0), or why not (-1). */
int rtscope_description_check(struct rtscope_description *event, struct rtscope_refusal *why);
/* One that was checked, without the digit; `at` has room for what is left. */
void rtscope_description_copy(char *at, const struct rtscope_description *event);
/* The text of a note; returns its bytes. */
uint32_t rtscope_note(char note[RTSCOPE_DESK_BYTES], const char *provider, const char *name,
                      const struct rtscope_refusal *why);

/* ending.c: whether the process ends, as far as was watched; else a library may be closed. */
void rtscope_ending_watch(void);
int rtscope_is_ending(void);

/* forks.c: held by whoever adds to the table or takes from the list of objects; never by the
 * recording path, and not over a fork. */
void rtscope_lock(void);
void rtscope_unlock(void);
/* A child that is forked meanwhile has what was written before this, or nothing of what is written
 * behind it. */
void rtscope_settle(void);
/* The same for the recording path, which waits for nobody for long and wakes nobody: whether it has
 * the lock. Who comes back to it from a signal's handler in another process has none of it. */
int rtscope_lock_shortly(void);
void rtscope_unlock_shortly(void);
/* Whether this child was forked by a handler above a thread that is between these two. */
int rtscope_is_amid(void);
/* Has children call the function of register.c. */
void rtscope_forks_watch(void);
/* Whether this is in that. Another thread of its parent may have held a lock of the C library's
 * that nobody gives back, as that of the list of loaded objects: who asks there waits for ever. */
int rtscope_forks_in_child(void);

/* register.c: a child of fork begins anew. */
void rtscope_begin_in_child(void);
/* Under the lock: all that writes into a set knows the size of its rings. */
void rtscope_know_size(uint32_t place, uint64_t ring_bytes);

/* closed.c: what a library that is closed had is kept for one that is the same (1), or there is
 * none (0); another file has none of it. */
void rtscope_closed_add(const struct rtscope_object *object);
int rtscope_closed_take(const struct rtscope_file *file, struct rtscope_object *object);
void rtscope_closed_forget(void);

/* left.c: a child's, of its parent's rings: what an event that a handler interrupted to fork may
 * still look at becomes private, all else goes. */
void rtscope_left_keep(struct rtscope_file *parent, uint64_t switches_used);
/* Nobody is in an event any more. */
void rtscope_left_forget(void);

/* shared/stays.c: there where the library stays loaded when all that it serves is closed. */
extern const int rtscope_stays_ __attribute__((weak, visibility("hidden")));

/* table.c: entries are appended at `used`, which moves behind them. */
struct rtscope_table {
    struct rtscope_file *file;
    uint32_t next_id;
    /* Whether it tells a recorder why events are missing. */
    int has_notes;
};
/* What an entry says besides its description. */
struct rtscope_facts {
    uint32_t kind;
    uint64_t switch_offset;
    uint64_t code_address;
};
/* Room for a description of `text_bytes`, behind an entry that is filled in already; NULL where
 * there is none. An event gets its id. */
char *rtscope_table_append(struct rtscope_table *table, uint32_t text_bytes,
                           const struct rtscope_facts *facts, uint64_t *used);
/* The entry of an enumeration: its name, then two bounds and a text for each label. */
void rtscope_table_enumeration(struct rtscope_table *table,
                               const struct rtscope_enumeration_ *enumeration, uint64_t *used);
/* Says why an event is missing, to recorders that want it. */
void rtscope_table_note(struct rtscope_table *table, const char *provider, const char *name,
                        const struct rtscope_refusal *why, uint64_t *used);
/* The entry of an event, or, where recorders would not understand it, of a note. Returns whether
 * there is such an event. */
int rtscope_table_event(struct rtscope_table *table, struct rtscope_description *event,
                        const struct rtscope_facts *facts, uint64_t *used);
/* Once, under the name of an event: why what is recorded on some CPUs is lost. */
void rtscope_table_missing_rings(struct rtscope_table *table,
                                 const struct rtscope_description *event, uint64_t *used);
/* The bytes of an enumeration's description. */
size_t rtscope_enumeration_bytes(const struct rtscope_enumeration_ *enumeration);

/* sweep.c: removes rings in `folder` that say nothing and whose process is gone. */
void rtscope_sweep(int folder);

/* sessions.c: which events are wanted, by recorders and by the environment. */
struct rtscope_event_rules {
    /* Whose each set of rings is: they say of which sessions the lines count. */
    uint64_t sessions[RTSCOPE_SETS_MAX];
    /* Why lines of some may be missing, or NULL. */
    const char *left_out;
    size_t length;
    /* Lines, each ended by a zero byte, those of each session behind a line `!`. Patterns of
     * sessions without a name, and of the environment, are set 0's. */
    char patterns[RTSCOPE_RULES_BYTES];
};
void rtscope_event_rules_read(struct rtscope_event_rules *rules,
                              const struct rtscope_settings *settings);
/* Whether a recorder is there, or one that was killed said so; also where nobody can tell. */
int rtscope_sessions_any(const char *directory);
/* Gives sets to the sessions, in the order in which they were found. Returns, as those below do, a
 * bit for each set: those that have lines. */
unsigned rtscope_event_rules_give_sets(struct rtscope_event_rules *rules);
/* Whose session wants rings that keep the newest: a line `!overwrite`, which is no pattern. */
unsigned rtscope_event_rules_overwrite(const struct rtscope_event_rules *rules);
/* Whose sessions want an event. */
unsigned rtscope_event_rules_match(const struct rtscope_event_rules *rules, unsigned level,
                                   const char *provider, const char *name);
/* The same also of rules whose filter the recorder still has to give. */
unsigned rtscope_event_rules_name(const struct rtscope_event_rules *rules, unsigned level,
                                  const char *provider, const char *name);
/* What the session of a set asks of its rings, in the lines `!ring SIZE`, `!ring-at-most SIZE`,
 * `!rings-in-all SIZE` and `!rings-per-user SIZE`. */
struct rtscope_ring_rules rtscope_event_rules_rings(const struct rtscope_event_rules *rules,
                                                    uint32_t set);

/* sizes.c: rings that get their size while the process runs. Of a file that was made anew: */
void rtscope_sizes_begin(const struct rtscope_file *file, const struct rtscope_settings *settings);
/* Gives the rings of a set a size where they have none, as somebody wants their events by now. */
void rtscope_sizes_choose(struct rtscope_file *file, struct rtscope_settings *settings,
                          uint32_t place, const struct rtscope_event_rules *rules);
/* At an event: takes over the size that was stored. Whether there is one, and it is possible. */
int rtscope_sizes_take(uint32_t place);

/* What lines `!app-context PROVIDER:CONTEXT` name, each ended by a zero; returns their bytes. */
size_t rtscope_event_rules_contexts(const struct rtscope_event_rules *rules, char *names,
                                    size_t room);

/* wanted.c: into which sets events of these go, by recorders or the environment; no more is looked
 * for than `all`. */
unsigned rtscope_object_is_wanted(const struct rtscope_event_rules *rules,
                                  const struct rtscope_object *object, unsigned all);
unsigned rtscope_late_is_wanted(const struct rtscope_event_rules *rules,
                                const struct rtscope_late *late, unsigned all);
/* Lets `sets` have the event of a switch; recorders may change it at the same time. */
void rtscope_switch_give(void *state, unsigned sets);

/* objects.c: notes programs and libraries that are loaded and not yet known. */
void rtscope_objects_note(const struct rtscope_file *file);
/* Notes those that the parent of this child had noted. */
void rtscope_objects_inherit(const struct rtscope_file *file, const struct rtscope_file *parent);

/* write.c: CLOCK_MONOTONIC of the machine, and how far that of the process is ahead. */
extern int64_t rtscope_clock_ahead_ns;
uint64_t rtscope_monotonic_ns(void);
extern uint32_t rtscope_write_clock;
extern uint32_t rtscope_write_block_ns;
/* The library's own view of each set of rings, and where their modes stand in shared memory. All
 * that is not a view writes into set 0. */
extern struct rtscope_object rtscope_write_views[RTSCOPE_SETS_MAX];
extern volatile uint32_t *rtscope_write_modes[RTSCOPE_SETS_MAX];
/* A bit for each set whose rings get their memory with their first event. */
extern unsigned rtscope_write_late_sets;

/* A switch as what is changed in one step. */
typedef uint64_t __attribute__((may_alias)) rtscope_switch_word;

/* filter.c */
struct rtscope_filters_ {
    const unsigned char *at;
    size_t bytes;
};
extern struct rtscope_filters_ rtscope_filters_;

/* thread.c: where they are, from the thread pointer; 0 where that cannot be known. */
ptrdiff_t rtscope_find_tid(void);
ptrdiff_t rtscope_find_rseq_area(int is_wanted);

/* register.c: the calling thread's id, 0 where it cannot be known without a system call. */
uint32_t rtscope_own_tid(void);

#pragma GCC visibility pop

#endif
