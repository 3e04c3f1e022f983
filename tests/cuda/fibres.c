#include "fibres.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SWITCH_BEGIN(save, bottom, bytes) __sanitizer_start_switch_fiber(save, bottom, bytes)
#define SWITCH_END(saved, bottom, bytes) __sanitizer_finish_switch_fiber(saved, bottom, bytes)
#else
#define SWITCH_BEGIN(save, bottom, bytes) ((void)(save), (void)(bottom), (void)(bytes))
#define SWITCH_END(saved, bottom, bytes) ((void)(saved), (void)(bottom), (void)(bytes))
#endif

#define STACK_BYTES (256u * 1024)

typedef struct fibre {
    char *stack;
    void *sp;        /* x86-64: where it stopped */
    ucontext_t context; /* elsewhere */
    void *fake;      /* the sanitizer's */
    bool ended;
} fibre;

static fibre lanes[FIBRES_MOST], main_fibre;
static const void *main_bottom;
static size_t main_bytes;
static unsigned current;
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

static void to_main(bool last)
{
    fibre *const self = &lanes[current];
    SWITCH_BEGIN(last ? NULL : &self->fake, main_bottom, main_bytes);
    go(self, &main_fibre);
    SWITCH_END(self->fake, &main_bottom, &main_bytes);
    (void)last;
}

static void entry(void)
{
    SWITCH_END(NULL, &main_bottom, &main_bytes);
    work(current);
    lanes[current].ended = true;
    to_main(true);
    abort(); /* an ended fibre is not resumed */
}

static void make(fibre *f)
{
    if (f->stack == NULL) {
        f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED)
            abort();
    }
    f->ended = false;
    f->fake = NULL;
#if defined(__x86_64__)
    void **top = (void **)(void *)(f->stack + STACK_BYTES);
    *--top = NULL; /* the stack is at 8 modulo 16 on entry, as after a call */
    *--top = (void *)(uintptr_t)entry;
    top -= 6;
    for (int i = 0; i < 6; i++)
        top[i] = NULL;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
#endif
}

static void resume(unsigned lane)
{
    current = lane;
    SWITCH_BEGIN(&main_fibre.fake, lanes[lane].stack, STACK_BYTES);
    go(&main_fibre, &lanes[lane]);
    SWITCH_END(main_fibre.fake, NULL, NULL);
}

void fibres_run(unsigned n, void (*body)(unsigned lane))
{
    unsigned left = n;
    if (n > FIBRES_MOST)
        abort();
    work = body;
    for (unsigned i = 0; i < n; i++)
        make(&lanes[i]);
    for (unsigned round = 0; left > 0; round++)
        for (unsigned i = 0; i < n; i++) {
            const unsigned lane = round % 2 == 0 ? i : n - 1 - i; /* nothing may depend on the order */
            if (lanes[lane].ended)
                continue;
            resume(lane);
            left -= lanes[lane].ended;
        }
}

void fibres_yield(void) { to_main(false); }
unsigned fibres_current(void) { return current; }
bool fibres_ended(unsigned lane) { return lanes[lane].ended; }
