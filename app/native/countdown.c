/* A timer for a process whose interpreter is stuck. It counts pieces of its own sleep: the time for which a process was
 * stopped (SIGSTOP, a batch system that suspends a job) is one piece at most, where a clock would be long past its end. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdint.h>

#ifndef _WIN32
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* state  [2] pieces to go, which another thread may put back, and whether this is to end; said: what to print at the end
 * signal_number  whose handler prints the stacks; then the process ends with code 1 */
void lk_count_down(int64_t *state, int64_t piece_ns, const char *said, int signal_number) {
    const struct timespec piece = {(time_t)(piece_ns / 1000000000), (long)(piece_ns % 1000000000)};
    for (;;) {
        nanosleep(&piece, 0);
        if (__atomic_load_n(state + 1, __ATOMIC_SEQ_CST)) return;
        if (__atomic_sub_fetch(state, 1, __ATOMIC_SEQ_CST) > 0) continue;
        if (write(2, said, strlen(said)) >= 0) raise(signal_number);
        _exit(1);
    }
}
#endif
