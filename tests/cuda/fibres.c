#include "fibres.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(GS_TEST_SANITIZED) /* the program is, and this is not: it would take twice as long */
#include <sanitizer/common_interface_defs.h>
#define SWITCH_BEGIN(save, bottom, bytes) __sanitizer_start_switch_fiber(save, bottom, bytes)
#define SWITCH_END(saved, bottom, bytes) __sanitizer_finish_switch_fiber(saved, bottom, bytes)
#else
#define SWITCH_BEGIN(save, bottom, bytes) ((void)(save), (void)(bottom), (void)(bytes))
#define SWITCH_END(saved, bottom, bytes) ((void)(saved), (void)(bottom), (void)(bytes))
#endif

typedef struct fibre {
    char *stack;
#if defined(__x86_64__)
    void *sp; /* where it stopped */
#else
    ucontext_t context;
#endif
    void *fake;            /* the sanitizer's */
    unsigned lane;         /* that it runs */
    const unsigned *count; /* that it waits for to be no longer `seen` */
    unsigned seen;
} fibre;

/* A fibre runs one lane after the other for as long as they do not wait, so that lanes that never do cost no switch. */
static fibre pool[FIBRES_MOST], main_fibre;
static fibre *waiting[FIBRES_MOST], *self; /* by lane; the one that runs, NULL outside */
static const void *main_bottom;
static size_t main_bytes;
static unsigned lanes, begun, left, made; /* of the run: how many there are, have begun, have not ended; fibres in
                                           * use */
static unsigned at;                       /* the lane that was resumed last */
static bool up;                           /* the way the round goes */
static bool opening;                      /* the fibre that is being resumed comes from outside */
static bool stuck;                        /* all lanes that are left wait */
static void (*work)(unsigned lane);

#if defined(__x86_64__)
/* Saves what a call must keep, changes stacks, and returns there. */
void fibres_switch(void **save, void *to);
__asm__(".text\n"
        ".globl fibres_switch\n"
        ".type fibres_switch, @function\n"
        "fibres_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size fibres_switch, .-fibres_switch\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");
#endif

static void go(fibre *from, fibre *to)
{
#if defined(__x86_64__)
    fibres_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
}

/* Whoever has been resumed. */
static void arrive(fibre *f)
{
    if (opening)
        SWITCH_END(f->fake, &main_bottom, &main_bytes);
    else
        SWITCH_END(f->fake, NULL, NULL);
    opening = false;
}

/* To another fibre, or back to the stack that runs them (NULL). */
static void change(fibre *to)
{
    fibre *const from = self == NULL ? &main_fibre : self;
    self = to;
    if (to == NULL)
        SWITCH_BEGIN(&from->fake, main_bottom, main_bytes);
    else
        SWITCH_BEGIN(&from->fake, to->stack, FIBRE_STACK_BYTES);
    go(from, to == NULL ? &main_fibre : to);
    arrive(from);
}

char *fibres_stacks(void)
{
    static char *stacks;
    if (stacks == NULL && (stacks = mmap(NULL, FIBRES_BYTES, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
        abort();
    return stacks;
}

/* Stacks that begin at the same place of a page would share the few lines of a cache where each of them ends: one is
 * left and the next resumed at each wait. */
#define COLOURS 64u
#define COLOUR_BYTES 1088u

static void entry(void);

static fibre *make(void)
{
    fibre *const f = &pool[made++];
    /* of a run before, waiting for another; so the sanitizer makes its own stack for it but once */
    if (f->stack != NULL)
        return f;
    f->stack = fibres_stacks() + (size_t)(f - pool) * FIBRE_STACK_BYTES;
#if defined(__x86_64__)
    void **top = (void **)(void *)(f->stack + FIBRE_STACK_BYTES - (size_t)(f - pool) % COLOURS * COLOUR_BYTES);
    *--top = NULL; /* the stack is at 8 modulo 16 on entry, as after a call */
    *--top = (void *)(uintptr_t)entry;
    top -= 6;
    for (int i = 0; i < 6; i++)
        top[i] = NULL;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = FIBRE_STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
#endif
    return f;
}

/* Who goes on: a lane that has not begun, else the next one of the round that need not wait any longer, or where they
 * all must, one that says so; NULL: none is left. */
static fibre *next(void)
{
    fibre *any = NULL;
    if (begun < lanes)
        return make();
    if (left == 0)
        return NULL;
    for (unsigned steps = 0; steps < 2 * lanes; steps++) {
        if (at == (up ? lanes - 1 : 0))
            up = !up; /* nothing may depend on the order */
        else
            at = up ? at + 1 : at - 1;
        fibre *const f = waiting[at];
        if (f != NULL && *f->count != f->seen)
            return f;
        any = f != NULL ? f : any;
    }
    stuck = true;
    return any;
}

static void entry(void)
{
    arrive(self);
    for (;;) {
        while (begun < lanes) {
            self->lane = begun++;
            work(self->lane);
            waiting[self->lane] = NULL;
            left--;
        }
        change(next());
    }
}

void fibres_run(unsigned n, void (*body)(unsigned lane))
{
    if (n == 0 || n > FIBRES_MOST)
        abort();
    work = body;
    lanes = left = n;
    begun = made = 0;
    at = n - 1;
    up = true;
    opening = true;
    stuck = false;
    change(make());
}

bool fibres_wait(const unsigned *count, unsigned seen)
{
    fibre *const me = self;
    me->count = count;
    me->seen = seen;
    waiting[me->lane] = me;
    fibre *const to = next();
    if (to != me)
        change(to);
    return !stuck;
}

unsigned fibres_current(void) { return self->lane; }
