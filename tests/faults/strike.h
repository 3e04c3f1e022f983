/* strike.h - which call goes wrong, and how: told from outside, counted, and reported.
 *
 * Environment:
 *   GS_FAULT=CLASS:KIND:N[:on]  the N-th call (from 1) of CLASS goes wrong as KIND says; with "on" all from there on
 *   GS_FAULT_REPORT=FILE        "hit FUNCTION OBJECT+OFFSET..." when it strikes: who called, innermost first; at exit a
 *                               line "CLASS COUNT" for each class
 * Classes are the rows of the table below; "alien" (and "alien_map") are allocations and threads (mappings) of the C++
 * runtime, oneDNN, OpenMP and METIS, which end the program themselves, or say on stderr what they like, where they
 * fail. KIND is the name of an errno; or "short" (half of the bytes), "torn" (half is written, then EIO), "late" (0.2
 * seconds later than it could be; of completions: the last that is there takes its place).
 */
#ifndef GS_TESTS_FAULTS_STRIKE_H
#define GS_TESTS_FAULTS_STRIKE_H

#define CLASS_MAP(X) X(open) X(read) X(write) X(sync) X(rename) X(remove) X(mkdir) X(stat) X(size) X(list) X(lock) \
    X(map) X(thread) X(ring) X(submit) X(done) X(alloc) X(alien) X(alien_map)

typedef enum class {
#define X(name) CLASS_##name,
    CLASS_MAP(X)
#undef X
    CLASSES
} class;

/* Kinds beside errnos, which are positive. */
enum { KIND_SHORT = -1, KIND_TORN = -2, KIND_LATE = -3 };

/* Of the fault that is wished for; -1 and 0: none. */
extern int strike_class, strike_kind;

/* Constructors of libraries run before this and are not the program's. */
void strike_begin(void);
void strike_end(void);
/* 0, or the kind of fault that this call shall have. */
int strike(class c, const char *function);
/* `own`, or an alien class where the caller (its return address) is a library's. */
class strike_whose(class own, const void *caller);

#endif /* GS_TESTS_FAULTS_STRIKE_H */
