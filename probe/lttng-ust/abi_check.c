/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles where LTTng-UST's headers lay out what abi.h says; a test does so. */
#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>
#include <lttng/ust-ringbuffer-context.h>

#include "abi.h"

#define SAME_SIZE(own, theirs)                                                                    \
    _Static_assert(sizeof(struct own) == sizeof(struct theirs), #own " and " #theirs)
#define SAME(own, field, theirs, their_field)                                                     \
    _Static_assert(offsetof(struct own, field) == offsetof(struct theirs, their_field),           \
                   #own "." #field " and " #theirs "." #their_field)

SAME_SIZE(ust_probe, lttng_ust_tracepoint_probe);
SAME(ust_probe, data, lttng_ust_tracepoint_probe, data);
SAME_SIZE(ust_tracepoint, lttng_ust_tracepoint);
SAME(ust_tracepoint, state, lttng_ust_tracepoint, state);
SAME(ust_tracepoint, probes, lttng_ust_tracepoint, probes);
SAME(ust_tracepoint, signature, lttng_ust_tracepoint, signature);

SAME_SIZE(ust_integer, lttng_ust_type_integer);
SAME(ust_integer, bits, lttng_ust_type_integer, size);
SAME(ust_integer, base, lttng_ust_type_integer, base);
SAME_SIZE(ust_float, lttng_ust_type_float);
SAME(ust_float, mantissa_bits, lttng_ust_type_float, mant_dig);
SAME_SIZE(ust_array, lttng_ust_type_array);
SAME(ust_array, element, lttng_ust_type_array, elem_type);
SAME(ust_array, length, lttng_ust_type_array, length);
SAME(ust_array, encoding, lttng_ust_type_array, encoding);
SAME_SIZE(ust_sequence, lttng_ust_type_sequence);
SAME(ust_sequence, length_name, lttng_ust_type_sequence, length_name);
SAME(ust_sequence, element, lttng_ust_type_sequence, elem_type);
SAME(ust_sequence, encoding, lttng_ust_type_sequence, encoding);
SAME_SIZE(ust_label, lttng_ust_enum_entry);
SAME(ust_label, last, lttng_ust_enum_entry, end);
SAME(ust_label, text, lttng_ust_enum_entry, string);
SAME(ust_label, options, lttng_ust_enum_entry, options);
SAME_SIZE(ust_labels, lttng_ust_enum_desc);
SAME(ust_labels, labels, lttng_ust_enum_desc, entries);
SAME(ust_labels, length, lttng_ust_enum_desc, nr_entries);
SAME_SIZE(ust_enum, lttng_ust_type_enum);
SAME(ust_enum, labels, lttng_ust_type_enum, desc);
SAME(ust_enum, container, lttng_ust_type_enum, container_type);

SAME_SIZE(ust_field, lttng_ust_event_field);
SAME(ust_field, type, lttng_ust_event_field, type);
SAME_SIZE(ust_class, lttng_ust_tracepoint_class);
SAME(ust_class, fields, lttng_ust_tracepoint_class, fields);
SAME(ust_class, length, lttng_ust_tracepoint_class, nr_fields);
SAME(ust_class, function, lttng_ust_tracepoint_class, probe_callback);
SAME(ust_class, signature, lttng_ust_tracepoint_class, signature);
SAME_SIZE(ust_event, lttng_ust_event_desc);
SAME(ust_event, class_, lttng_ust_event_desc, tp_class);
SAME(ust_event, level, lttng_ust_event_desc, loglevel);
SAME_SIZE(ust_provider, lttng_ust_probe_desc);
SAME(ust_provider, events, lttng_ust_probe_desc, event_desc);
SAME(ust_provider, length, lttng_ust_probe_desc, nr_events);
SAME(ust_provider, major, lttng_ust_probe_desc, major);

SAME_SIZE(ust_session, lttng_ust_session);
SAME(ust_session, active, lttng_ust_session, active);
SAME_SIZE(ust_channel, lttng_ust_channel_common);
SAME(ust_channel, enabled, lttng_ust_channel_common, enabled);
SAME(ust_channel, session, lttng_ust_channel_common, session);
SAME_SIZE(ust_context, lttng_ust_ring_buffer_ctx);
SAME(ust_context, client, lttng_ust_ring_buffer_ctx, client_priv);
SAME(ust_context, own, lttng_ust_ring_buffer_ctx, priv);
SAME_SIZE(ust_operations, lttng_ust_channel_buffer_ops);
SAME(ust_operations, reserve, lttng_ust_channel_buffer_ops, event_reserve);
SAME(ust_operations, commit, lttng_ust_channel_buffer_ops, event_commit);
SAME(ust_operations, write, lttng_ust_channel_buffer_ops, event_write);
SAME(ust_operations, copy_text, lttng_ust_channel_buffer_ops, event_strcpy);
SAME(ust_operations, copy_padded, lttng_ust_channel_buffer_ops, event_pstrcpy_pad);
SAME_SIZE(ust_buffer, lttng_ust_channel_buffer);
SAME(ust_buffer, channel, lttng_ust_channel_buffer, parent);
SAME(ust_buffer, operations, lttng_ust_channel_buffer, ops);
SAME_SIZE(ust_enabled, lttng_ust_event_common);
SAME(ust_enabled, child, lttng_ust_event_common, child);
SAME(ust_enabled, enabled, lttng_ust_event_common, enabled);
SAME(ust_enabled, has_filter, lttng_ust_event_common, eval_filter);
SAME_SIZE(ust_recorder, lttng_ust_event_recorder);
SAME(ust_recorder, buffer, lttng_ust_event_recorder, chan);

_Static_assert((int)UST_INTEGER == (int)lttng_ust_type_integer, "integers");
_Static_assert((int)UST_STRING == (int)lttng_ust_type_string, "texts");
_Static_assert((int)UST_FLOAT == (int)lttng_ust_type_float, "floats");
_Static_assert((int)UST_ENUM == (int)lttng_ust_type_enum, "labels");
_Static_assert((int)UST_ARRAY == (int)lttng_ust_type_array, "arrays");
_Static_assert((int)UST_SEQUENCE == (int)lttng_ust_type_sequence, "sequences");
_Static_assert(UST_PROVIDER_MAJOR == LTTNG_UST_PROVIDER_MAJOR, "the version of providers");
