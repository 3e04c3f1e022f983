"""Writes, from the functions of cuda/driver.h, what stands between a program and the table of host_gpu.h:

export_driver.py OUT.c cuda/driver.h symbols   each by its symbol, as the driver's libraries have them: asks
                                               host_gpu_before() whether it fails, then does what the table does
export_driver.py OUT.c cuda/file_library.h files  those of cuFile by their symbols: each does what the table of
                                               host_files.h does
export_driver.py OUT.c cuda/driver.h locked    a table of the same functions that many threads may call, one at a
                                               time"""
import pathlib
import re
import sys

out, header = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").replace("\\\n", " ")
functions = []
for member, symbol, parameters in re.findall(r'X\((\w+), "(\w+)",\s*\((.*?)\)\)(?=\s)', header):
    parameters = re.sub(r"\s+", " ", parameters)
    each = [] if parameters == "void" else parameters.split(",")
    names = ", ".join(re.search(r"(\w+)$", p.strip()).group(1) for p in each)
    functions.append((member, symbol, parameters, names))
lines = ["/* Made from cuda/driver.h by export_driver.py. */"]
if sys.argv[3] == "files":
    lines = ["/* Made from cuda/file_library.h by export_driver.py. */", '#include "host_files.h"', ""]
    required = re.search(r"GS_CUFILE_MAP\(X\)(.*?)\n\n", header, re.S).group(1)
    for kind, member, symbol, parameters in re.findall(r'X\(([\w ]+), (\w+), "(\w+)",\s*\((.*?)\)\)', required):
        parameters = re.sub(r"\s+", " ", parameters)
        each = [] if parameters == "void" else parameters.split(",")
        names = ", ".join(re.search(r"(\w+)$", p.strip()).group(1) for p in each)
        lines += [f"__attribute__((visibility(\"default\"))) {kind} {symbol}({parameters});",
                  f"{kind} {symbol}({parameters})", "{",
                  f"    {'' if kind == 'void' else 'return '}host_files()->{member}({names});", "}", ""]
elif sys.argv[3] == "symbols":
    kinds = {"cublas": "HOST_BLAS", "nvrtc": "HOST_COMPILER", "nccl": "HOST_NCCL", "cu": "HOST_DRIVER"}
    lines += ['#include "host_library.h"', ""]
    for member, symbol, parameters, names in functions:
        kind = kinds[re.match("cublas|nvrtc|nccl|cu", symbol).group()]
        lines += [f"__attribute__((visibility(\"default\"))) gs_cu_result {symbol}({parameters});",
                  f"gs_cu_result {symbol}({parameters})", "{",
                  f"    const gs_cu_result failed = host_gpu_before({kind}, \"{symbol}\");",
                  f"    return failed != 0 ? failed : host_gpu_table()->{member}({names});", "}", ""]
else:
    lines += ['#include "host_memory.h"', "", "#include <pthread.h>", "",
              "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;",
              "static gs_cuda_driver inner, outer;", ""]
    for member, symbol, parameters, names in functions:
        lines += [f"static gs_cu_result do_{member}({parameters})", "{", "    pthread_mutex_lock(&lock);",
                  f"    const gs_cu_result locked_result = inner.{member}({names});",
                  "    pthread_mutex_unlock(&lock);", "    return locked_result;", "}", ""]
    lines += ["const gs_cuda_driver *host_gpu_locked(const gs_cuda_driver *table)", "{", "    inner = *table;"]
    lines += [f"    outer.{member} = table->{member} == NULL ? NULL : do_{member};" for member, *_ in functions]
    lines += ["    return &outer;", "}", "", "void host_gpu_lock(void) { pthread_mutex_lock(&lock); }",
              "void host_gpu_unlock(void) { pthread_mutex_unlock(&lock); }", ""]
out.write_text("\n".join(lines))
