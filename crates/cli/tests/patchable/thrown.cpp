// Exceptions pass through functions whose entries are recorded, a backtrace finds them all, longjmp
// leaves them, and threads come, are cancelled and go.
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile int sink;
static jmp_buf back;
static int frames;

struct Witness {
    std::string &text;
    explicit Witness(std::string &text) : text(text) {}
    APART ~Witness() { text += 'w'; }
};

APART void fail(int depth)
{
    if (depth == 0) {
        void *addresses[64];
        frames = backtrace(addresses, 64);
        throw std::runtime_error("deep");
    }
    fail(depth - 1);
    sink = depth;
}

APART void pass(std::string &text)
{
    Witness witness(text);
    fail(10);
    sink = 1;
}

APART void leap(int depth)
{
    if (depth == 0 && sink >= 0)
        longjmp(back, 7);
    if (depth > 0)
        leap(depth - 1);
    sink = depth;
}

APART void wait_for_cancel()
{
    for (;;)
        pause();
}

static void *cancelled(void *text)
{
    Witness witness(*static_cast<std::string *>(text));
    wait_for_cancel();
    return nullptr;
}

int main()
{
    std::string text;
    try {
        pass(text);
        return 1;
    } catch (const std::runtime_error &error) {
        text += error.what();
    }
    if (text != "wdeep" || frames < 13)
        return 2;
    const int jumped = setjmp(back);
    if (jumped == 0)
        leap(10);
    if (jumped != 7)
        return 3;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, cancelled, &text) != 0)
        return 4;
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    // Where it was cancelled before it began there was nothing to unwind.
    return text == "wdeepw" || text == "wdeep" ? 0 : 5;
}
