#!/usr/bin/env bash
# gpu_releases.sh - CUDA's libraries of several releases side by side: the newest that the driver takes is used,
# whatever else is there; where there are only newer ones, a line says which, what the driver is, and what to do.
. "$(dirname "$0")/../e2e/lib.sh"
: "${HOST_LIBRARY:?}" "${NEWER_LIBRARY:?}" "${BUILTINS:?}"

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method natural --parts 3 || finish
mkdir "$work/lib" "$work/kernels"
export LD_LIBRARY_PATH=$work/lib GS_HOST_GPU=$work/kernels
options=(train "$work/store" --model gcn --hidden 16 --epochs 1 --optimizer sgd --device cuda)

# library NAME FILE: what NAME is in the folder.
library() { ln -sf "$2" "$work/lib/$1"; }
trains() { run "$1, $GS_HOST_GPU_CUDA" "$GNNSTREAM" "${options[@]}"; }
refused() { refuse 1 "$1" "$GNNSTREAM" "${options[@]}"; }

library libcuda.so.1 "$HOST_LIBRARY"
export GS_HOST_GPU_CUDA=10020
refused 'the driver is of CUDA 10.2; at least 11.0 is needed: .*or use --device cpu'

# A release that no machine is likely to have beside these.
export GS_HOST_GPU_CUDA=11040
if ldconfig -p | grep -q -E 'lib(nvrtc|cublas)\.so\.11' ||
    ls /usr/local/cuda/lib*/lib{nvrtc,cublas}.so.11 >/dev/null 2>&1; then
    note "this machine has CUDA 11: what is said without it was not tried"
else
    library libnvrtc.so.13 "$NEWER_LIBRARY" # or one that the machine has
    too_new=' is of CUDA 1[2-9].[0-9]*, and the driver here takes CUDA 11.4 at most: '
    refused "libnvrtc.so[.1-9]*${too_new}install a newer driver, or libnvrtc of CUDA 11 .*--device cpu"
    library libnvrtc.so "$HOST_LIBRARY" # a name without a release, too, has one
    library libcublas.so "$NEWER_LIBRARY"
    refused "libcublas.so[.1-9]*${too_new}.*libcublas of CUDA 11 "
    library libcublas.so.11 "$HOST_LIBRARY"
    trains "libraries by their plain names and others"
    rm "$work"/lib/libnvrtc.so "$work"/lib/libcublas.so*

    # As pip installs them: of releases up to 12 a folder for each, from 13 on one for all. The loader knows neither,
    # and the compiler asks it for its builtins by name. (A copy: a link would be the library that is open already.)
    export GS_HOST_GPU_BUILTINS=libnvrtc-builtins.so.11.4
    for wheel in each:cuda_nvrtc:cublas one:cu11:cu11; do
        IFS=: read -r name nvrtc cublas <<<"$wheel"
        packages=$work/$name/lib/python3.11/site-packages/nvidia
        mkdir -p "$packages/$nvrtc/lib" "$packages/$cublas/lib" "$work/$name/bin"
        cp "$HOST_LIBRARY" "$packages/$nvrtc/lib/libnvrtc.so.11"
        ln -s "$HOST_LIBRARY" "$packages/$cublas/lib/libcublas.so.11"
        rm -rf "${work:?}/kernels"/*
        refuse 1 'the kernels of this model do not compile: nvrtc: error: failed to open its builtins' \
            env VIRTUAL_ENV="$work/$name" "$GNNSTREAM" "${options[@]}"
        cp "$BUILTINS" "$packages/$nvrtc/lib/libnvrtc-builtins.so.11.4"
        run "wheels of an environment, $name" env VIRTUAL_ENV="$work/$name" "$GNNSTREAM" "${options[@]}"
        rm -rf "${work:?}/kernels"/*
        : >"$work/$name/bin/python3"
        chmod +x "$work/$name/bin/python3"
        run "wheels of the python3 in PATH, $name" env PATH="$work/$name/bin:$PATH" "$GNNSTREAM" "${options[@]}"
    done
    unset GS_HOST_GPU_BUILTINS
fi

# 13 and 12 beside each other: the driver's own, and of an older one the older.
export GS_HOST_GPU_CUDA=12080
for name in libnvrtc libcublas; do
    library $name.so "$NEWER_LIBRARY"
    library $name.so.13 "$NEWER_LIBRARY"
    library $name.so.12 "$HOST_LIBRARY"
done
trains "the older of two releases"
export GS_HOST_GPU_CUDA=13000
refused 'libnvrtc has no nvrtcCreateProgram' # the newer of two, which here is not whole
for name in libnvrtc libcublas; do
    library $name.so.13 "$HOST_LIBRARY"
    library $name.so.12 "$NEWER_LIBRARY"
done
trains "the newer of two releases"
export GS_HOST_GPU_CUDA=14010 # of which this program has not heard
trains "libraries older than the driver"
finish
