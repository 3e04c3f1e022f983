"""Writes the functions of a driver's library, each by its symbol: export_driver.py OUT.c cuda/driver.h

Each first asks host_gpu_before() whether it fails, then does what host_gpu.h's table does."""
import pathlib
import re
import sys

out, header = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").replace("\\\n", " ")
lines = ["/* Made from cuda/driver.h by export_driver.py. */", '#include "host_library.h"', ""]
for member, symbol, parameters in re.findall(r'X\((\w+), "(\w+)",\s*\((.*?)\)\)(?=\s)', header):
    names = ", ".join(re.search(r"(\w+)$", p.strip()).group(1) for p in parameters.split(","))
    kind = "HOST_BLAS" if symbol.startswith("cublas") else "HOST_COMPILER" if symbol.startswith("nvrtc") else "HOST_DRIVER"
    parameters = re.sub(r"\s+", " ", parameters)
    lines += [f"__attribute__((visibility(\"default\"))) gs_cu_result {symbol}({parameters});", f"gs_cu_result {symbol}({parameters})", "{",
              f"    const gs_cu_result failed = host_gpu_before({kind}, \"{symbol}\");",
              f"    return failed != 0 ? failed : host_gpu_table()->{member}({names});", "}", ""]
out.write_text("\n".join(lines))
