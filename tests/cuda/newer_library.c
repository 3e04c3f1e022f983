/* What a libnvrtc and a libcublas of CUDA 13.2 say of themselves. They have nothing else: who takes them finds that
 * out. */
__attribute__((visibility("default"))) int nvrtcVersion(int *major, int *minor);
__attribute__((visibility("default"))) int cublasGetProperty(int which, int *value);

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 2;
    return 0;
}

int cublasGetProperty(int which, int *value)
{
    *value = which == 0 ? 13 : 2;
    return 0;
}
