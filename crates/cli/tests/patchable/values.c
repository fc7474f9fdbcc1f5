/* Functions of all kinds of arguments and results, in C and C++: ends with 0 where each saw what
 * it was given and its caller got what it gave. */
#include <stdarg.h>
#include <stdint.h>

#define APART __attribute__((noinline, noclone))
#ifdef __clang__
#undef APART
#define APART __attribute__((noinline))
#endif

struct large {
    uint64_t words[5];
};
struct pair {
    double first;
    int64_t second;
};
typedef double four __attribute__((vector_size(16)));
static volatile int one = 1, last;

static APART double sum(int count, ...)
{
    va_list list;
    double total = 0;
    va_start(list, count);
    for (int n = 0; n < count; n++)
        total += n % 2 ? va_arg(list, double) : (double)va_arg(list, int);
    va_end(list);
    return total;
}

static APART struct large spread(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    const struct large large = {{a, b, c, d, e}};
    return large;
}

static APART struct pair both(double a, double b, double c, double d, double e, double f, double g,
                              double h, int64_t i)
{
    const struct pair pair = {a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h, i};
    return pair;
}

static APART long double half(long double number)
{
    return number / 2;
}

static APART float narrow(float a, int b, float c)
{
    return a * (float)b + c;
}

static APART four add(four a, four b)
{
    return a + b;
}

/* A leaf that keeps what it has below the stack pointer. */
static APART int leaf(int number)
{
    volatile int kept[8];
    for (int n = 0; n < 8; n++)
        kept[n] = number + n;
    return kept[0] + kept[7];
}

/* Does something behind the call, so that it is not made a loop. */
static APART int count_down(int number)
{
    const int below = number ? count_down(number - one) + 1 : 0;
    last = below;
    return below;
}

int main(void)
{
    const struct large large = spread(1, 22, 333, 4444, (uint64_t)55555 * (uint64_t)one);
    const struct pair pair = both(1, 2, 3, 4, 5, 6, 7, 8 * one, -9);
    const four left = {1, 2}, right = {(double)one * 10, 20};
    const four total = add(left, right);
    if (sum(4, 1, 2.5, 3, 4.25 * one) != 10.75)
        return 1;
    if (large.words[0] != 1 || large.words[1] != 22 || large.words[2] != 333 ||
        large.words[3] != 4444 || large.words[4] != 55555)
        return 2;
    if (pair.first != 204 || pair.second != -9)
        return 3;
    if (half(3.5L * one) != 1.75L || narrow(1.5f, 4 * one, 0.25f) != 6.25f)
        return 4;
    if (total[0] != 11 || total[1] != 22)
        return 5;
    return leaf(one) == 9 && count_down(3) == 3 ? 0 : 6;
}
