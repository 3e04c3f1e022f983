/* cli_signals.c - Ctrl-C, SIGTERM and SIGHUP: asked once, the work stops and tidies up; asked again, the program ends.
 *
 * No handler runs on a working thread. Products come as generated code that keeps its stack pointer in the middle of a
 * heap buffer, and the kernel would put a handler's frame there, over whatever lies below. So the signals are blocked
 * before any other thread starts, and one thread waits for them.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "cli.h"

#define STACK_BYTES ((size_t)256 * 1024)
#define SAME_SECONDS 0.5 /* timeout(1) sends its signal to the process and to its group */

static volatile int stop_flag;

/* By the signal itself, as whoever waits for the program expects. A terminal that takes no text must not keep it
 * alive. */
static void end_by(int number)
{
    static const char words[] =
        "gnnstream: interrupted again: ended at once; what was being written may be left unfinished\n";
    sigset_t open;

    signal(number, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&open);
    sigaddset(&open, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    alarm(1);
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    sigaddset(&open, number);
    pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    raise(number);
}

static void *wait_for_signals(void *asked)
{
    int first = 0, number;
    double began = 0;

    pthread_setname_np(pthread_self(), "signals");
    for (;;) {
        if (sigwait(asked, &number) != 0)
            continue;
        if (first == 0) {
            first = number;
            began = cli_now();
            stop_flag = 1;
        } else if (number != first || cli_now() - began > SAME_SECONDS) {
            end_by(number);
        }
    }
    return NULL;
}

/* Sent by others, or by a library that gives up. On a working thread it may write over its data, which nobody reads any
 * more. */
static void on_abort(int number)
{
    static const char words[] =
        "gnnstream: aborted (SIGABRT), from outside or by a library; what was being written may be left unfinished\n";
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    raise(number);
}

void cli_signals_prepare(void)
{
    const struct sigaction abort_once = {.sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (sigaction(SIGABRT, NULL, &before) == 0 && before.sa_handler == SIG_DFL) /* tests have their own */
        sigaction(SIGABRT, &abort_once, NULL);
}

const volatile int *cli_stop(void)
{
    static sigset_t asked; /* the thread's, for as long as the program runs */
    struct sigaction hangup;
    pthread_attr_t attr;
    pthread_t thread;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup(1) has it ignored */
        sigaddset(&asked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &asked, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&thread, &attr, wait_for_signals, &asked) != 0)
        pthread_sigmask(SIG_UNBLOCK, &asked, NULL); /* then they end the program as they would any other */
    pthread_attr_destroy(&attr);
    return &stop_flag;
}
