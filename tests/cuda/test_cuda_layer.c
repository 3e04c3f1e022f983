/* A layer on a GPU, called as a library calls it that has a context, memory and streams of its own there: rows and
 * gradients are those of the same layer on the processors, nothing of them goes through the host, the order is that of
 * the caller's stream, and memory of others is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/size.h"
#include "cuda/driver.h"
#include "gnnstream.h"
#include "gpu_devices.h"
#include "host_gpu.h"
#include "support/support.h"

enum { MOST_VERTICES = 400, MOST_EDGES = 3000, MOST_WIDTH = 16, MOST_TENSORS = 16, MOST = 2048, TYPES = 3 };

static float uniform(uint32_t i, uint32_t of)
{
    const uint32_t counter[4] = {i, of, 0, 0}, key[2] = {11, 12};
    uint32_t r[4];
    gs_philox4x32(r, counter, key);
    return 2 * gs_uniform_f32(r[0]) - 1;
}

static uint32_t below(uint32_t most, uint32_t i, uint32_t of)
{
    return (uint32_t)((double)(uniform(i, of) + 1) / 2 * most) % most;
}

/* ---- the caller: another library of the process ---- */

static struct caller {
    const gs_cuda_driver *d;
    gs_cu_handle context, stream, event;
    gs_cu_handle told; /* the stream that a layer is told of: its own, or NULL, the default one, as PyTorch's is */
} caller;

static void enter_caller(void) { assert_int_equal(caller.d->context_set(caller.context), 0); }

static void open_caller(int device)
{
    int gpu = 0;
    choose_gpu();
    gs_assert_ok(gs_cuda_driver_open(&caller.d));
    assert_int_equal(caller.d->init(0), 0);
    assert_int_equal(caller.d->device_get(&gpu, device), 0);
    assert_int_equal(caller.d->context_retain(&caller.context, gpu), 0);
    enter_caller();
    assert_int_equal(caller.d->stream_create(&caller.stream, GS_CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(caller.d->event_create(&caller.event, GS_CU_EVENT_DISABLE_TIMING), 0);
    caller.told = caller.stream;
}

static void close_caller(int device)
{
    enter_caller();
    assert_int_equal(caller.d->event_destroy(caller.event), 0);
    assert_int_equal(caller.d->stream_destroy(caller.stream), 0);
    assert_int_equal(caller.d->context_release(device), 0);
}

static void *take(uint64_t floats)
{
    gs_cu_memory p = 0;
    enter_caller();
    assert_int_equal(caller.d->memory_alloc(&p, floats * sizeof(float)), 0);
    return (void *)p;
}

static void give(void *p)
{
    enter_caller();
    if (p != NULL)
        assert_int_equal(caller.d->memory_free((gs_cu_memory)p), 0);
}

/* Told to the caller's stream; nobody waits. */
static void put(void *to, const float *from, uint64_t floats)
{
    enter_caller();
    assert_int_equal(caller.d->copy_in((gs_cu_memory)to, from, floats * sizeof(float), caller.stream), 0);
}

static void get(float *to, const void *from, uint64_t floats)
{
    enter_caller();
    assert_int_equal(caller.d->copy_out(to, (gs_cu_memory)from, floats * sizeof(float), caller.stream), 0);
}

/* What `then` is told from now on comes behind what `first` was told. */
static void go_on(gs_cu_handle first, gs_cu_handle then)
{
    enter_caller();
    assert_int_equal(caller.d->event_record(caller.event, first), 0);
    assert_int_equal(caller.d->stream_wait(then, caller.event, 0), 0);
}

static void wait_for_all(void)
{
    enter_caller();
    assert_int_equal(caller.d->stream_synchronize(caller.stream), 0);
}

/* ---- one layer on both ---- */

typedef struct sizes {
    uint32_t vertices, edges, in, out;
} sizes;

typedef struct result {
    float y[MOST_VERTICES * MOST_WIDTH], tested[MOST_VERTICES * MOST_WIDTH], dx[MOST_VERTICES * MOST_WIDTH];
    float gradient[MOST_TENSORS][MOST];
} result;

static struct {
    sizes n;
    int64_t src[MOST_EDGES], dst[MOST_EDGES], type[MOST_EDGES];
    float weight[MOST_EDGES], x[MOST_VERTICES * MOST_WIDTH], g[MOST_VERTICES * MOST_WIDTH];
    float value[MOST_TENSORS][MOST], after[MOST_TENSORS][MOST];
    uint64_t count[MOST_TENSORS];
    uint32_t tensors;
    result cpu, gpu;
} fixture;

static gs_layer_graph make_graph(sizes n, bool typed, bool weighted)
{
    fixture.n = n;
    for (uint32_t e = 0; e < n.edges; e++) { /* vertex 0 is a hub, the last ones have no in-edges */
        fixture.src[e] = below(n.vertices, e, 1);
        fixture.dst[e] = e % 3 == 0 ? 0 : below(n.vertices - n.vertices / 8, e, 2);
        fixture.type[e] = below(TYPES, e, 3);
        fixture.weight[e] = 1 + uniform(e, 4) / 2;
    }
    for (uint32_t i = 0; i < n.vertices * n.in; i++)
        fixture.x[i] = uniform(i, 5);
    for (uint32_t i = 0; i < n.vertices * n.out; i++)
        fixture.g[i] = uniform(i, 6);
    return (gs_layer_graph){.vertices = n.vertices, .edges = n.edges, .source = fixture.src,
                            .destination = fixture.dst, .weight = weighted ? fixture.weight : NULL,
                            .type = typed ? fixture.type : NULL, .edge_types = typed ? TYPES : 0};
}

static gs_train_options options_of(const char *model, const char *device, double dropout)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.model = model;
    o.device = device;
    o.threads = 2;
    o.heads = strcmp(model, "gat") == 0 ? 2 : 1;
    o.dropout = dropout;
    return o;
}

static void take_values(const gs_layer *l)
{
    fixture.tensors = gs_layer_tensors(l);
    assert_true(fixture.tensors <= MOST_TENSORS);
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        gs_tensor_info t;
        gs_assert_ok(gs_layer_tensor(l, k, &t));
        fixture.count[k] = t.count;
        assert_true(t.count <= MOST);
        gs_assert_ok(gs_layer_start(l, k, fixture.value[k], t.count));
        for (uint32_t i = 0; i < t.count; i++)
            fixture.value[k][i] += 0.05f * uniform(i, 40 + k);
    }
}

static void run_on_cpu(gs_layer *l, result *out)
{
    const float *parameter[MOST_TENSORS];
    float *gradient[MOST_TENSORS];
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        parameter[k] = fixture.value[k];
        gradient[k] = out->gradient[k];
    }
    gs_assert_ok(gs_layer_forward(l, fixture.x, parameter, false, 0, out->tested));
    gs_assert_ok(gs_layer_forward(l, fixture.x, parameter, true, 3, out->y));
    gs_assert_ok(gs_layer_backward(l, fixture.x, parameter, fixture.g, out->dx, gradient));
}

/* Memory of the caller's on the GPU. */
typedef struct there {
    void *x, *y, *tested, *g, *dx, *value[MOST_TENSORS], *gradient[MOST_TENSORS];
} there;

static there take_there(void)
{
    const sizes *const n = &fixture.n;
    there t = {.x = take(n->vertices * n->in), .y = take(n->vertices * n->out),
               .tested = take(n->vertices * n->out), .g = take(n->vertices * n->out),
               .dx = take(n->vertices * n->in)};
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        t.value[k] = take(fixture.count[k]);
        t.gradient[k] = take(fixture.count[k]);
    }
    return t;
}

static void give_there(there *t)
{
    void *const each[] = {t->x, t->y, t->tested, t->g, t->dx};
    for (size_t i = 0; i < GS_ARRAY_LEN(each); i++)
        give(each[i]);
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        give(t->value[k]);
        give(t->gradient[k]);
    }
}

/* What is read was told to the stream just before, and what is made is read by it just behind: nobody waits between.
 * All that a pass copies between host and GPU are parameters that nobody learns. */
static void run_on_gpu(gs_layer *l, result *out)
{
    const sizes *const n = &fixture.n;
    there t = take_there();
    const float *parameter[MOST_TENSORS];
    float *gradient[MOST_TENSORS];
    gs_cu_handle now = NULL;

    for (uint32_t k = 0; k < fixture.tensors; k++) {
        put(t.value[k], fixture.value[k], fixture.count[k]);
        parameter[k] = t.value[k];
        gradient[k] = t.gradient[k];
    }
    put(t.x, fixture.x, n->vertices * n->in);
    put(t.g, fixture.g, n->vertices * n->out);
    (void)host_gpu_take_counts();
    go_on(caller.stream, caller.told);
    gs_assert_ok(gs_layer_set_stream(l, caller.told));
    gs_assert_ok(gs_layer_forward(l, t.x, parameter, false, 0, t.tested));
    gs_assert_ok(gs_layer_forward(l, t.x, parameter, true, 3, t.y));
    gs_assert_ok(gs_layer_backward(l, t.x, parameter, t.g, t.dx, gradient));
    go_on(caller.told, caller.stream);
    const host_gpu_counts counts = host_gpu_take_counts();
    assert_int_equal(caller.d->context_get(&now), 0);
    assert_ptr_equal(now, caller.context);
    if (!real_gpu()) {
        assert_true(counts.launches > 0 && counts.bytes_in <= 64 && counts.bytes_out == 0);
        assert_int_equal(counts.allocations, 0);
    }
    get(out->y, t.y, n->vertices * n->out);
    get(out->tested, t.tested, n->vertices * n->out);
    get(out->dx, t.dx, n->vertices * n->in);
    for (uint32_t k = 0; k < fixture.tensors; k++)
        get(out->gradient[k], t.gradient[k], fixture.count[k]);
    /* By the next forward pass gradients are the caller's alone, who may have given their memory to others. */
    for (uint32_t k = 0; k < fixture.tensors; k++)
        put(t.gradient[k], fixture.value[k], fixture.count[k]);
    go_on(caller.stream, caller.told);
    gs_assert_ok(gs_layer_forward(l, t.x, parameter, true, 3, t.tested));
    go_on(caller.told, caller.stream);
    for (uint32_t k = 0; k < fixture.tensors; k++)
        get(fixture.after[k], t.gradient[k], fixture.count[k]);
    wait_for_all();
    for (uint32_t k = 0; k < fixture.tensors; k++)
        assert_memory_equal(fixture.after[k], fixture.value[k], fixture.count[k] * sizeof(float));
    give_there(&t);
}

/* Sums of float32 in another order. */
static void check_equal(const char *model, const char *what, const float *want, const float *got, uint64_t count)
{
    double most = 0, far = 0;
    for (uint64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)want[i]));
        far = isfinite(got[i]) ? fmax(far, fabs((double)want[i] - (double)got[i])) : INFINITY;
    }
    if (!(far <= 1e-5 * (most + 1)))
        fail_msg("%s: %s differs by %g, its largest number is %g", model, what, far, most);
}

static void check_model(const char *model, sizes n, bool typed, bool weighted, double dropout)
{
    const gs_layer_graph graph = make_graph(n, typed, weighted);
    const gs_train_options on_cpu = options_of(model, "cpu", dropout), on_gpu = options_of(model, "cuda:0", dropout);
    gs_layer *l = NULL;

    gs_assert_ok(gs_layer_open(&l, &graph, n.in, n.out, &on_cpu));
    take_values(l);
    run_on_cpu(l, &fixture.cpu);
    gs_layer_close(l);
    gs_assert_ok(gs_layer_open(&l, &graph, n.in, n.out, &on_gpu));
    assert_int_equal(gs_layer_tensors(l), fixture.tensors);
    for (int again = 0; again < 2; again++) {
        caller.told = again == 0 ? caller.stream : NULL;
        memset(&fixture.gpu, 0xff, sizeof(fixture.gpu));
        run_on_gpu(l, &fixture.gpu);
        check_equal(model, "y", fixture.cpu.y, fixture.gpu.y, n.vertices * n.out);
        check_equal(model, "y without dropout", fixture.cpu.tested, fixture.gpu.tested, n.vertices * n.out);
        check_equal(model, "the gradient of x", fixture.cpu.dx, fixture.gpu.dx, n.vertices * n.in);
        for (uint32_t k = 0; k < fixture.tensors; k++)
            check_equal(model, "a gradient", fixture.cpu.gradient[k], fixture.gpu.gradient[k], fixture.count[k]);
    }
    gs_layer_close(l);
}

static void test_cuda_layer__is_that_of_the_processors(void **state)
{
    static const char *const zoo[] = {"gcn", "sage", "gat", "gin"};
    (void)state;
    open_caller(0);
    for (size_t i = 0; i < GS_ARRAY_LEN(zoo); i++) {
        check_model(zoo[i], (sizes){400, 3000, 16, 8}, false, false, 0);
        check_model(zoo[i], (sizes){7, 0, 3, 2}, false, false, 0); /* no edge at all */
    }
    close_caller(0);
}

static void test_cuda_layer__weights_types_dropout_and_kept_rows(void **state)
{
    (void)state;
    open_caller(0);
    check_model("gcn", (sizes){61, 500, 5, 7}, false, true, 0.5);
    check_model("gat", (sizes){61, 500, 6, 4}, false, false, 0.5);
    check_model("rgcn", (sizes){61, 500, 6, 4}, true, false, 0);
    check_model("layer wide(h[in]) -> [out]:\n    param w[out, in]\n    s = sum(u.h * e.weight)\n"
                "    m = max(u.h)\n    return tanh(s @ w' + m @ w')\n", (sizes){61, 500, 6, 4}, false, true, 0);
    close_caller(0);
}

/* Rows of the caller's have no second place: memory grows by the parameters alone. */
static void test_cuda_layer__has_no_place_for_the_callers_rows(void **state)
{
    static const uint32_t width[] = {64, 2048};
    const gs_layer_graph graph = make_graph((sizes){400, 3000, 16, 8}, false, false);
    const gs_train_options o = options_of("gcn", "cuda:0", 0);
    size_t taken[2], left[2], total = 0;
    (void)state;

    open_caller(0);
    for (int i = 0; i < 2; i++) {
        gs_layer *l = NULL;
        assert_int_equal(caller.d->memory_info(&left[0], &total), 0);
        gs_assert_ok(gs_layer_open(&l, &graph, width[i], 8, &o));
        assert_int_equal(caller.d->memory_info(&left[1], &total), 0);
        taken[i] = left[0] - left[1];
        gs_layer_close(l);
    }
    if (!real_gpu()) /* x alone has 3.2 MB more */
        assert_true(taken[1] < taken[0] + (1 << 20));
    close_caller(0);
}

static void test_cuda_layer__says_what_is_wrong(void **state)
{
    const gs_layer_graph graph = make_graph((sizes){8, 20, 4, 4}, false, false);
    gs_train_options o = options_of("gcn", "cuda:0", 0);
    gs_layer *l = NULL;
    float host[64] = {0};
    const float *parameter[MOST_TENSORS], *const nowhere[MOST_TENSORS] = {host, host};
    float *gradient[MOST_TENSORS];
    gs_cu_handle now = NULL;
    (void)state;

    open_caller(1); /* whose calls are about another GPU: before, and afterwards */
    float *const far = take(64);
    gs_assert_ok(gs_layer_open(&l, &graph, 4, 4, &o));
    assert_int_equal(caller.d->context_get(&now), 0);
    assert_ptr_equal(now, caller.context);
    take_values(l);
    const struct caller other = caller;
    open_caller(0);
    float *const x = take(64), *const y = take(64);
    for (uint32_t k = 0; k < fixture.tensors; k++)
        parameter[k] = gradient[k] = take(fixture.count[k]);
    assert_int_equal(caller.d->context_set(other.context), 0);
    gs_assert_ok(gs_layer_set_stream(l, caller.stream));
    gs_assert_fails(gs_layer_forward(l, host, parameter, true, 0, y), GS_EINVAL, "x: is not memory of cuda:0");
    gs_assert_fails(gs_layer_forward(l, x, parameter, true, 0, host), GS_EINVAL, "y: is not memory of cuda:0");
    gs_assert_fails(gs_layer_forward(l, far, parameter, true, 0, y), GS_EINVAL, "x: is not memory of cuda:0");
    gs_assert_fails(gs_layer_forward(l, x + 1, parameter, true, 0, y), GS_EINVAL, "multiple of 16 bytes");
    gs_assert_fails(gs_layer_forward(l, x, nowhere, true, 0, y), GS_EINVAL, "is not memory of cuda:0");
    gs_assert_ok(gs_layer_forward(l, x, parameter, true, 0, y));
    gs_assert_fails(gs_layer_backward(l, x, parameter, y, NULL, gradient), GS_EINVAL, "x_gradient: is NULL");
    gradient[0] = host;
    gs_assert_fails(gs_layer_backward(l, x, parameter, y, x, gradient), GS_EINVAL, "is not memory of cuda:0");
    gs_assert_ok(gs_layer_backward(l, x, parameter, y, x, NULL));
    gs_layer_close(l);
    assert_int_equal(caller.d->context_get(&now), 0);
    assert_ptr_equal(now, other.context);
    o.device = "cuda:0,1";
    gs_assert_fails(gs_layer_open(&l, &graph, 4, 4, &o), GS_EUNSUPPORTED, "one device");
    give(x);
    give(y);
    for (uint32_t k = 0; k < fixture.tensors; k++)
        give((void *)(uintptr_t)parameter[k]);
    close_caller(0);
    caller = other;
    give(far);
    close_caller(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_layer__is_that_of_the_processors),
        cmocka_unit_test(test_cuda_layer__weights_types_dropout_and_kept_rows),
        cmocka_unit_test(test_cuda_layer__has_no_place_for_the_callers_rows),
        cmocka_unit_test(test_cuda_layer__says_what_is_wrong),
    };
    setenv("GS_HOST_GPUS", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
