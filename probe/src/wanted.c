/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether somebody wants an event of a program or library, before it is described in the table. */
#define _GNU_SOURCE
#include "internal.h"

struct wanting {
    const struct rtscope_event_rules *rules;
    int is_wanted;
};

static void want(struct rtscope_description *event, struct wanting *wanting)
{
    struct rtscope_refusal why;
    if (!wanting->is_wanted && rtscope_description_check(event, &why) == 0)
        wanting->is_wanted = rtscope_event_rules_name(
            wanting->rules, (uint8_t)event->text[0], event->provider, event->name);
}

static void want_site(const struct rtscope_site *site, void *context)
{
    struct rtscope_description event = {site->text, site->text_bytes, 1, NULL, NULL, 0};
    want(&event, context);
}

int rtscope_object_is_wanted(const struct rtscope_event_rules *rules,
                             const struct rtscope_object *object)
{
    struct wanting wanting = {rules, 0};
    if (rtscope_sections_fit(object->sections))
        rtscope_sections_each(object->sections, want_site, &wanting);
    return wanting.is_wanted;
}

int rtscope_late_is_wanted(const struct rtscope_event_rules *rules,
                           const struct rtscope_late *late)
{
    struct wanting wanting = {rules, 0};
    struct rtscope_description event = {late->text, late->text_bytes, 0, NULL, NULL, 0};
    if (late->kind == RTSCOPE_ENTRY_EVENT)
        want(&event, &wanting);
    return wanting.is_wanted;
}
