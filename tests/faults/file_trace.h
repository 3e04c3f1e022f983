/* file_trace.h - what a program did to the files under a folder, in order, written down for tests/faults/power.py.
 *
 * GS_FAULT_TRACE names the file, GS_FAULT_ROOT the folder. A record is a line
 *   open FD PATH FLAGS    | FLAGS: c created or made empty where it was not, t made empty, d a folder, - neither
 *   write FD OFFSET BYTES | and so many bytes follow, then a newline
 *   size FD BYTES SHRINK  | SHRINK 1: becomes BYTES long, 0: at least that
 *   sync FD, close FD, mkdir PATH, remove PATH, rename FLAGS FROM<tab>TO
 * One writer at a time: the order of the lines is that of the calls, but for calls that overlapped.
 */
#ifndef GS_TESTS_FAULTS_FILE_TRACE_H
#define GS_TESTS_FAULTS_FILE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void trace_begin(void);
void trace_close(void);
void trace_open(int fd, const char *path, int flags);
void trace_open_at(int fd, int dir, const char *path, int flags);
void trace_forget(int fd);
void trace_write(int fd, const void *from, size_t bytes, uint64_t offset);
/* Where the descriptor stands. */
void trace_append(int fd, const void *from, size_t bytes);
void trace_resize(int fd, uint64_t bytes, bool shrink);
void trace_sync(int fd);
void trace_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
/* Of a descriptor, "/proc/self/fd/N", which gets a name. */
void trace_link(const char *from, int to_dir, const char *to);
void trace_remove(int dir, const char *path);
void trace_mkdir(int dir, const char *path);

#endif /* GS_TESTS_FAULTS_FILE_TRACE_H */
