// SPDX-License-Identifier: MIT OR Apache-2.0
package org.rtscope.probe;

/** The calls into librtscope-java.so: found by java.library.path, or named by rtscope.library. */
final class Native {
    static {
        final String named = System.getProperty("rtscope.library");
        if (named != null) {
            System.load(named);
        } else {
            System.loadLibrary("rtscope-java");
        }
    }

    private Native() {}

    static native void jul(String message, String logger, String className, String method,
                           long millis, int level, int thread);

    /** The words: message, logger, class, method, file, thread. */
    static native void log4j2(String[] words, int line, long millis, int level);
}
