/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who wants an event of a program or library, before it is described in the table. */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

struct wanting {
    const struct rtscope_event_rules *rules;
    /* A bit for each set that gets an event, and for each that may. */
    unsigned sets;
    unsigned all;
};

static void want(struct rtscope_description *event, struct wanting *wanting)
{
    struct rtscope_refusal why;
    if (wanting->sets != wanting->all && rtscope_description_check(event, &why) == 0)
        wanting->sets |= rtscope_event_rules_name(wanting->rules, (uint8_t)event->text[0],
                                                  event->provider, event->name);
}

static void want_site(const struct rtscope_site *site, void *context)
{
    struct rtscope_description event = {site->text, site->text_bytes, 1, NULL, NULL, 0};
    want(&event, context);
}

unsigned rtscope_object_is_wanted(const struct rtscope_event_rules *rules,
                                  const struct rtscope_object *object, unsigned all)
{
    struct wanting wanting = {rules, 0, all};
    if (rtscope_sections_fit(object->sections))
        rtscope_sections_each(object->sections, want_site, &wanting);
    return wanting.sets;
}

unsigned rtscope_late_is_wanted(const struct rtscope_event_rules *rules,
                                const struct rtscope_late *late, unsigned all)
{
    struct wanting wanting = {rules, 0, all};
    struct rtscope_description event = {late->text, late->text_bytes, 0, NULL, NULL, 0};
    if (late->kind == RTSCOPE_ENTRY_EVENT)
        want(&event, &wanting);
    return wanting.sets;
}

void rtscope_switch_give(void *state, unsigned sets)
{
    rtscope_switch_word *const word = state;
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), behind;
    do {
        struct rtscope_switch now;
        memcpy(&now, &before, sizeof now);
        now.sets = (uint8_t)(now.sets | sets);
        now.enabled = (uint8_t)((now.sets & RTSCOPE_ENABLED) |
                                (now.sets > 1 || now.filter ? RTSCOPE_FILTERED : 0));
        memcpy(&behind, &now, sizeof behind);
    } while (!__atomic_compare_exchange_n(word, &before, behind, 0, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}
