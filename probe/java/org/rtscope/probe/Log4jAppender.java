// SPDX-License-Identifier: MIT OR Apache-2.0
package org.rtscope.probe;

import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;

/** Gives the lines of Log4j 2 to rtscope: the event lttng_log4j2:event. */
public final class Log4jAppender extends AbstractAppender {
    /** An appender of this name, to be started and added to a logger. */
    public Log4jAppender(final String name) {
        super(name, null, null, true, Property.EMPTY_ARRAY);
    }

    @Override
    public void append(final LogEvent event) {
        final StackTraceElement source = event.getSource();
        final String[] words = {
            event.getMessage().getFormattedMessage(),
            event.getLoggerName(),
            source == null ? null : source.getClassName(),
            source == null ? null : source.getMethodName(),
            source == null ? null : source.getFileName(),
            event.getThreadName(),
        };
        Native.log4j2(words, source == null ? 0 : source.getLineNumber(), event.getTimeMillis(),
                      event.getLevel().intLevel());
    }
}
