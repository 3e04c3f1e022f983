/* test_io_system.c - a system that does not allow everything: no io_uring, no
 * registration, a kernel that is short of memory, a ring that dies. */
#include <dirent.h>
#include <errno.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "io/io_internal.h"
#include "io_fixture.h"

static const fixture_case threads_case = {.backend = GS_IO_THREADS};
static const fixture_case uring_case = {.backend = GS_IO_URING};
static const fixture_case auto_case = {.backend = GS_IO_AUTO};
static bool uring_allowed;

/* --- the ring's system calls, as the linker wraps them --- */

static struct {
    uint32_t fail_next; /* this many calls fail */
    bool forever;
    int error;
    uint32_t calls;
} enter;

int __real_io_uring_submit(struct io_uring *ring);
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);

static bool enter_fails(void)
{
    enter.calls++;
    if (!enter.forever && enter.fail_next == 0)
        return false;
    if (!enter.forever)
        enter.fail_next--;
    return true;
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
    return enter_fails() ? -enter.error : __real_io_uring_submit(ring);
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    return enter_fails() ? -enter.error : __real_io_uring_submit_and_wait(ring, wait);
}

static void need_uring(void)
{
    memset(&enter, 0, sizeof(enter));
    if (!uring_allowed) {
        print_message("io_uring is not allowed here\n");
        skip();
    }
}

/* Reads a file whole through the fixture's gs_io and checks it. */
static void read_and_check(fixture *b, uint32_t blocks)
{
    fixture_make_file(b, "f", blocks * 4096, 1);
    const uint32_t file = fixture_add(b, "f", GS_IO_READ);
    fixture_submit(b, &(gs_io_request){.file = file, .length = blocks * 4096, .memory = b->memory});
    fixture_drain(b);
    fixture_expect(b->memory, 0, blocks * 4096, 1);
}

static void test_io_system__busy_kernel_is_tried_again(void **state)
{
    (void)state;
    const int errors[] = {EAGAIN, EBUSY, EINTR};
    need_uring();
    for (size_t i = 0; i < GS_ARRAY_LEN(errors); i++) {
        fixture b;
        fixture_open(&b, &uring_case, 4, 4, 4096, 16 * 4096);
        enter.fail_next = 5;
        enter.error = errors[i];
        read_and_check(&b, 16);
        assert_int_equal(enter.fail_next, 0);
        fixture_close(&b);
    }
}

/* The same while some pieces are in the kernel already. */
static void test_io_system__busy_kernel_with_pieces_under_way(void **state)
{
    (void)state;
    need_uring();
    fixture b;
    fixture_open(&b, &uring_case, 8, 8, 4096, 16 * 4096);
    fixture_make_file(&b, "f", 16 * 4096, 1);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    for (uint64_t i = 0; i < 8; i++) {
        fixture_submit(&b, &(gs_io_request){
                               .file = file, .offset = i * 8192, .length = 8192, .memory = b.memory + i * 8192});
        enter.fail_next = i % 2 == 0 ? 0 : 2;
        enter.error = EAGAIN;
        gs_io_reap(b.io, NULL, 0, false);
    }
    fixture_drain(&b);
    fixture_expect(b.memory, 0, 16 * 4096, 1);
    fixture_close(&b);
}

static void test_io_system__dead_ring_fails_requests_and_does_not_hang(void **state)
{
    (void)state;
    gs_io_completion done;
    need_uring();
    fixture b;
    fixture_open(&b, &uring_case, 4, 2, 4096, 16 * 4096);
    read_and_check(&b, 4);
    enter.forever = true;
    enter.error = EBADF;
    const gs_io_request r = {.file = 0, .length = 4 * 4096, .memory = b.memory};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
        assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
        assert_int_equal(done.status, GS_EIO);
        assert_int_equal(gs_io_explain(b.io, &r, &done), GS_EIO);
        fixture_expect_text(strerror(EBADF));
        fixture_expect_text(b.path);
    }
    fixture_close(&b);
}

/* --- calls that a filter forbids, in a child --- */

/* Lets `call`, with `argument` as its second one (or any: -1), fail with `error`
 * in this process from now on. */
static bool forbid(int call, int argument, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | (argument < 0 ? BPF_JGE : BPF_JEQ) | BPF_K, argument < 0 ? 0 : (uint32_t)argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = GS_ARRAY_LEN(code), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define CHILD_SKIPS 77

/* Runs `body` in a child, which exits 0, CHILD_SKIPS, or with the line that failed. */
static void in_child(int (*body)(void))
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS) {
        print_message("this system has no seccomp filters\n");
        skip();
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("child: status 0x%x", (unsigned)status);
}

/* cmocka's assertions jump into the parent's frame, so a child says where it failed. */
#define CHECK(what)                                                                            \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, gs_last_error());   \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

/* A gs_io with a registered area moves a file of 64 KiB there and back. */
static int check_transfer(gs_io *io, uint8_t *memory, const char *path)
{
    gs_io_completion done;
    uint32_t file;
    CHECK(gs_io_add_file(io, &file, path, GS_IO_CREATE) == GS_OK);
    fixture_fill(memory, 0, 65536, 4);
    const gs_io_request w = {.file = file, .write = true, .length = 65536, .memory = memory};
    const gs_io_request r = {.file = file, .length = 65536, .memory = memory};
    CHECK(gs_io_submit(io, &w) == GS_OK);
    CHECK(gs_io_reap(io, &done, 1, true) == 1 && done.status == GS_OK);
    memset(memory, 0, 65536);
    CHECK(gs_io_submit(io, &r) == GS_OK);
    CHECK(gs_io_reap(io, &done, 1, true) == 1 && done.status == GS_OK);
    for (uint64_t i = 0; i < 65536; i++)
        CHECK(memory[i] == fixture_byte(i, 4));
    return 0;
}

/* Opens with `wanted`, checks name and note, moves data. */
static int check_backend(gs_io_backend wanted, const char *name, const char *note)
{
    gs_io *io = NULL;
    uint8_t *const memory = gs_alloc_pages(65536);
    CHECK(memory != NULL);
    const struct gs_io_buffer area = {memory, 65536};
    const gs_io_config config = {.backend = wanted, .piece_bytes = 8192, .buffers = &area, .buffer_count = 1};
    CHECK(gs_io_open(&io, &config) == GS_OK);
    if (strcmp(gs_io_backend_name(io), name) != 0 || strstr(gs_io_fallback_reason(io), note) == NULL) {
        fprintf(stderr, "'%s' with '%s', expected '%s' with '%s'\n", gs_io_backend_name(io),
                gs_io_fallback_reason(io), name, note);
        return 1;
    }
    if (*note == '\0')
        CHECK(*gs_io_fallback_reason(io) == '\0');
    char path[64];
    snprintf(path, sizeof(path), "io-test-system-%d", (int)getpid());
    const int failed = check_transfer(io, memory, path);
    gs_io_close(io);
    unlink(path);
    gs_free_pages(memory, 65536);
    return failed;
}

static int forbidden_setup(int error, const char *note)
{
    gs_io *io = NULL;
    if (!forbid(__NR_io_uring_setup, -1, error))
        return CHILD_SKIPS;
    if (check_backend(GS_IO_AUTO, "threads", note) != 0)
        return 1;
    CHECK(gs_io_open(&io, &(gs_io_config){.backend = GS_IO_URING}) == GS_EUNSUPPORTED);
    CHECK(io == NULL && strstr(gs_last_error(), note) != NULL && strstr(gs_last_error(), "GS_IO") != NULL);
    setenv("GS_IO", "uring", 1);
    CHECK(gs_io_open(&io, &(gs_io_config){.backend = GS_IO_AUTO}) == GS_EUNSUPPORTED);
    unsetenv("GS_IO");
    return 0;
}

static int child_setup_not_permitted(void) { return forbidden_setup(EPERM, "io_uring is "); }
static int child_setup_not_there(void) { return forbidden_setup(ENOSYS, strerror(ENOSYS)); }

static int child_no_probe(void)
{
    if (!forbid(__NR_io_uring_register, IORING_REGISTER_PROBE, EINVAL))
        return CHILD_SKIPS;
    return check_backend(GS_IO_AUTO, "threads", "too old");
}

static int child_no_buffers(void)
{
    if (!forbid(__NR_io_uring_register, IORING_REGISTER_BUFFERS, ENOMEM))
        return CHILD_SKIPS;
    return check_backend(GS_IO_AUTO, "io_uring (unregistered buffers)", "ulimit -l");
}

static int child_no_file_table(void)
{
    if (!forbid(__NR_io_uring_register, IORING_REGISTER_FILES2, EINVAL))
        return CHILD_SKIPS;
    if (check_backend(GS_IO_AUTO, "io_uring", "") != 0) /* the older way */
        return 1;
    if (!forbid(__NR_io_uring_register, IORING_REGISTER_FILES, EMFILE))
        return CHILD_SKIPS;
    return check_backend(GS_IO_AUTO, "io_uring", ""); /* none at all */
}

static void test_io_system__without_io_uring_threads_serve(void **state)
{
    (void)state;
    in_child(child_setup_not_permitted);
    in_child(child_setup_not_there);
}

static void test_io_system__old_io_uring_is_not_used(void **state)
{
    (void)state;
    need_uring();
    in_child(child_no_probe);
}

static void test_io_system__buffers_may_stay_unregistered(void **state)
{
    (void)state;
    need_uring();
    in_child(child_no_buffers);
}

static void test_io_system__files_may_stay_unregistered(void **state)
{
    (void)state;
    need_uring();
    in_child(child_no_file_table);
}

/* --- choice of the backend --- */

static void test_io_system__environment_chooses(void **state)
{
    (void)state;
    gs_io *io = NULL;
    const gs_io_config any = {.backend = GS_IO_AUTO};
    setenv("GS_IO", "threads", 1);
    assert_int_equal(gs_io_open(&io, &any), GS_OK);
    assert_string_equal(gs_io_backend_name(io), "threads");
    assert_string_equal(gs_io_fallback_reason(io), "");
    gs_io_close(io);

    setenv("GS_IO", "rings", 1);
    io = NULL;
    assert_int_equal(gs_io_open(&io, &any), GS_EINVAL);
    assert_null(io);
    fixture_expect_text("GS_IO");
    fixture_expect_text("rings");

    setenv("GS_IO", "threads", 1); /* does not override what the caller asked for */
    if (uring_allowed) {
        assert_int_equal(gs_io_open(&io, &(gs_io_config){.backend = GS_IO_URING}), GS_OK);
        assert_string_equal(gs_io_backend_name(io), "io_uring");
        gs_io_close(io);
    }
    unsetenv("GS_IO");
    assert_int_equal(gs_io_open(&io, &any), GS_OK);
    assert_string_equal(gs_io_backend_name(io), uring_allowed ? "io_uring" : "threads");
    gs_io_close(io);
}

/* --- memory --- */

/* Every allocation of opening fails once; nothing leaks and nothing breaks. */
static void failing_allocations(gs_io_backend backend)
{
    const uint64_t live = gs_alloc_live_bytes();
    uint32_t failures = 0;
    for (uint64_t n = 1;; n++) {
        gs_io *io = NULL;
        uint32_t file;
        uint8_t *const memory = gs_alloc_pages(8192);
        const struct gs_io_buffer area = {memory, 8192};
        const gs_io_config config = {.backend = backend, .buffers = &area, .buffer_count = 1};
        gs_alloc_fail_nth(n);
        gs_status st = gs_io_open(&io, &config);
        if (st == GS_OK)
            st = gs_io_add_file(io, &file, "/proc/self/exe", GS_IO_INPUT);
        gs_alloc_fail_nth(0);
        if (st != GS_OK) {
            assert_int_equal(st, GS_ENOMEM);
            fixture_expect_text("out of memory");
            failures++;
        }
        gs_io_close(io);
        gs_free_pages(memory, 8192);
        assert_int_equal(gs_alloc_live_bytes(), live);
        if (st == GS_OK)
            break;
    }
    assert_in_range(failures, 6, 100);
}

static void test_io_system__short_of_memory_leaks_nothing(void **state)
{
    (void)state;
    need_uring();
    failing_allocations(GS_IO_THREADS);
    failing_allocations(GS_IO_URING);
}

/* A registered buffer may have 1 GiB. A larger area is registered in parts; a
 * piece across their border still arrives. The area is one small file of
 * memory mapped again and again, so it costs next to nothing. */
static void test_io_system__area_beyond_one_gib(void **state)
{
    (void)state;
    enum { TILE = 2 * 1024 * 1024 };
    const uint64_t bytes = GS_GIB + TILE;
    gs_io *io = NULL;
    gs_io_completion done;
    uint32_t index;
    need_uring();
    const int fd = memfd_create("area", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, TILE) == 0);
    uint8_t *const area = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(area != MAP_FAILED);
    for (uint64_t at = 0; at < bytes; at += TILE)
        assert_true(mmap(area + at, TILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == area + at);

    fixture b;
    fixture_open(&b, &threads_case, 1, 1, 0, 4096);
    fixture_make_file(&b, "f", TILE, 6);
    const struct gs_io_buffer buffer = {area, bytes};
    const gs_io_config config = {.backend = GS_IO_URING, .piece_bytes = 256 * GS_KIB, .buffers = &buffer,
                                 .buffer_count = 1};
    assert_int_equal(gs_io_open(&io, &config), GS_OK);
    print_message("an area of 1 GiB and more: %s %s\n", gs_io_backend_name(io), gs_io_fallback_reason(io));
    assert_int_equal(gs_io_add_file(io, &index, b.path, GS_IO_READ), GS_OK);
    const uint64_t at[] = {0, GS_GIB, GS_GIB - TILE / 2, GS_GIB - 128 * GS_KIB - 4096, GS_GIB - 4096};
    for (size_t i = 0; i < GS_ARRAY_LEN(at); i++) {
        const uint64_t length = GS_MIN((uint64_t)TILE, bytes - at[i]);
        memset(area, 0, TILE);
        assert_int_equal(gs_io_submit(io, &(gs_io_request){.file = index, .length = length, .memory = area + at[i]}),
                         GS_OK);
        assert_int_equal(gs_io_reap(io, &done, 1, true), 1);
        assert_int_equal(done.status, GS_OK);
        fixture_expect(area + at[i], 0, length, 6);
    }
    gs_io_close(io);
    fixture_close(&b);
    munmap(area, bytes);
    close(fd);
}

/* --- signals --- */

static volatile sig_atomic_t alarms;
static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* A timer that interrupts system calls (no SA_RESTART) does not disturb transfers. */
static void test_io_system__signals_do_not_disturb(void **state)
{
    (void)state;
    const fixture_case *const cases[] = {&threads_case, &auto_case};
    struct sigaction action = {.sa_handler = on_alarm}, before;
    const struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    memset(&enter, 0, sizeof(enter));
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        fixture b;
        fixture_open(&b, cases[i], 4, 4, 65536, GS_MIB);
        fixture_make_file(&b, "f", GS_MIB, 1);
        const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
        assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
        alarms = 0;
        setitimer(ITIMER_REAL, &every, NULL);
        for (int n = 0; n < 2000 && (n < 20 || alarms < 5); n++) {
            fixture_submit(&b, &(gs_io_request){.file = file, .length = GS_MIB, .memory = b.memory});
            fixture_drain(&b);
        }
        setitimer(ITIMER_REAL, &never, NULL);
        assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
        assert_in_range(alarms, 5, 1000000);
        fixture_expect(b.memory, 0, GS_MIB, 1);
        fixture_close(&b);
    }
}

#define MOST_THREADS 64

/* Numbers of this process's threads, of which the kernel may still be ending some that served an earlier ring. */
static uint32_t list_threads(long out[MOST_THREADS])
{
    uint32_t count = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (e->d_name[0] != '.' && count < MOST_THREADS)
            out[count++] = strtol(e->d_name, NULL, 10);
    closedir(d);
    return count;
}

static bool blocks_alarm(long thread)
{
    char path[64], line[256];
    uint64_t blocked = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/status", thread);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16) >> (SIGALRM - 1) & 1;
    if (f != NULL)
        fclose(f);
    return blocked != 0;
}

/* A handler runs on the program's threads, never on one of the workers. */
static void test_io_system__workers_take_no_signals(void **state)
{
    (void)state;
    gs_io *io = NULL;
    long before[MOST_THREADS], after[MOST_THREADS];
    const uint32_t old = list_threads(before);
    uint32_t deaf = 0;

    assert_int_equal(gs_io_open(&io, &(gs_io_config){.backend = GS_IO_THREADS}), GS_OK);
    const uint32_t all = list_threads(after);
    for (uint32_t i = 0; i < all; i++) {
        bool known = false;
        for (uint32_t k = 0; k < old && !known; k++)
            known = after[i] == before[k];
        deaf += !known && blocks_alarm(after[i]);
    }
    gs_io_close(io);
    assert_int_equal(deaf, GS_IO__THREADS);
}

int main(void)
{
    gs_io *io = NULL;
    uring_allowed = gs_io_open(&io, &(gs_io_config){.backend = GS_IO_URING}) == GS_OK;
    gs_io_close(io);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_io_system__environment_chooses),
        cmocka_unit_test(test_io_system__without_io_uring_threads_serve),
        cmocka_unit_test(test_io_system__old_io_uring_is_not_used),
        cmocka_unit_test(test_io_system__buffers_may_stay_unregistered),
        cmocka_unit_test(test_io_system__files_may_stay_unregistered),
        cmocka_unit_test(test_io_system__busy_kernel_is_tried_again),
        cmocka_unit_test(test_io_system__busy_kernel_with_pieces_under_way),
        cmocka_unit_test(test_io_system__dead_ring_fails_requests_and_does_not_hang),
        cmocka_unit_test(test_io_system__short_of_memory_leaks_nothing),
        cmocka_unit_test(test_io_system__area_beyond_one_gib),
        cmocka_unit_test(test_io_system__signals_do_not_disturb),
        cmocka_unit_test(test_io_system__workers_take_no_signals),
    };
    return cmocka_run_group_tests_name("io/io_system", tests, NULL, NULL);
}
