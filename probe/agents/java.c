/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The way from Java's handlers to agents.c. Needs a JDK's jni.h: make -C probe java. */
#include <jni.h>
#include <stdint.h>

void rtscope_agent_jul(const char *message, const char *logger, const char *class_name,
                       const char *method, int64_t millis, int32_t level, int32_t thread);
void rtscope_agent_log4j2(const char *message, const char *logger, const char *class_name,
                          const char *method, const char *file, int32_t line, int64_t millis,
                          int32_t level, const char *thread_name);

#define TEXTS 5

/* Texts of C as long as a call lasts; NULL where Java has null. */
static void take(JNIEnv *env, const jstring *texts, const char **taken, int count)
{
    for (int place = 0; place < count; place++)
        taken[place] =
            texts[place] ? (*env)->GetStringUTFChars(env, texts[place], NULL) : NULL;
}

static void give_back(JNIEnv *env, const jstring *texts, const char **taken, int count)
{
    for (int place = 0; place < count; place++)
        if (taken[place])
            (*env)->ReleaseStringUTFChars(env, texts[place], taken[place]);
}

JNIEXPORT void JNICALL Java_org_rtscope_probe_Native_jul(JNIEnv *env, jclass class, jstring message,
                                                         jstring logger, jstring class_name,
                                                         jstring method, jlong millis, jint level,
                                                         jint thread);
JNIEXPORT void JNICALL Java_org_rtscope_probe_Native_jul(JNIEnv *env, jclass class, jstring message,
                                                         jstring logger, jstring class_name,
                                                         jstring method, jlong millis, jint level,
                                                         jint thread)
{
    const jstring texts[] = {message, logger, class_name, method};
    const char *taken[TEXTS];
    (void)class;
    take(env, texts, taken, 4);
    rtscope_agent_jul(taken[0], taken[1], taken[2], taken[3], millis, level, thread);
    give_back(env, texts, taken, 4);
}

JNIEXPORT void JNICALL Java_org_rtscope_probe_Native_log4j2(JNIEnv *env, jclass class,
                                                            jobjectArray words, jint line,
                                                            jlong millis, jint level);
/* The words: message, logger, class, method, file, thread. */
JNIEXPORT void JNICALL Java_org_rtscope_probe_Native_log4j2(JNIEnv *env, jclass class,
                                                            jobjectArray words, jint line,
                                                            jlong millis, jint level)
{
    jstring texts[TEXTS + 1];
    const char *taken[TEXTS + 1];
    (void)class;
    for (int place = 0; place < TEXTS + 1; place++)
        texts[place] = (jstring)(*env)->GetObjectArrayElement(env, words, place);
    take(env, texts, taken, TEXTS + 1);
    rtscope_agent_log4j2(taken[0], taken[1], taken[2], taken[3], taken[4], line, millis, level,
                         taken[5]);
    give_back(env, texts, taken, TEXTS + 1);
}
