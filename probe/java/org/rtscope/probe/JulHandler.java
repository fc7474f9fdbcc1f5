// SPDX-License-Identifier: MIT OR Apache-2.0
package org.rtscope.probe;

import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/** Gives the lines of java.util.logging to rtscope: the event lttng_jul:event. */
public final class JulHandler extends Handler {
    private final Formatter formatter = new SimpleFormatter();

    @Override
    public void publish(final LogRecord record) {
        if (isLoggable(record)) {
            Native.jul(formatter.formatMessage(record), record.getLoggerName(),
                       record.getSourceClassName(), record.getSourceMethodName(),
                       record.getMillis(), record.getLevel().intValue(), record.getThreadID());
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
