/* From a program to its kernels: written, compiled to modules, and found by name. And those that every program has. */
#include "cuda/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/outfile.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

/* ---- text to modules ----
 *
 * From the text of kernels to a module of the driver.
 *
 * NVRTC compiles for the GPU that is there; what it made is kept in a file named by the hash of text, GPU and compiler,
 * under $GS_CUDA_CACHE, $XDG_CACHE_HOME/gnnstream/cuda or ~/.cache/gnnstream/cuda, so a model is compiled
 * once a machine. Without such a folder it is compiled every time.
 */

#define IMAGE_MOST (256 * GS_MIB)
#define STANDARD "--std=c++17"
#define VECTORS "--extra-device-vectorization"

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels"); }

static char *whole_text(const char *text)
{
    char *const whole = gs_malloc(strlen(gs_cuda_common_text) + strlen(text) + 1);
    if (whole != NULL)
        strcat(strcpy(whole, gs_cuda_common_text), text);
    return whole;
}

/* The compiler's first error, on one line. */
static gs_status complain(const gs_cuda_driver *d, gs_cu_handle program)
{
    size_t bytes = 0;
    GS_FREED char *log = NULL;

    if (d->log_bytes(program, &bytes) == 0 && bytes > 0 && (log = gs_calloc(bytes + 1, 1)) != NULL)
        d->log(program, log);
    const char *error = log == NULL ? NULL : strstr(log, "error");
    while (error != NULL && error > log && error[-1] != '\n')
        error--;
    return gs_fail(GS_EDEVICE, "device cuda: the kernels of this model do not compile: %.*s", error == NULL ? 20
                   : (int)strcspn(error, "\n"), error == NULL ? "the compiler failed" : error);
}

/* An intermediate text ends with its 0. */
static gs_status take_image(char **image, size_t *bytes, const gs_cuda_driver *d, gs_cu_handle program,
                            bool intermediate)
{
    size_t n = 0;
    char *p = NULL;
    if ((intermediate ? d->intermediate_bytes : d->image_bytes)(program, &n) != 0 || n == 0)
        return complain(d, program);
    if ((p = gs_malloc(n)) == NULL)
        return no_memory();
    if ((intermediate ? d->intermediate : d->image)(program, p) != 0) {
        gs_free(p);
        return complain(d, program);
    }
    *image = p;
    *bytes = n;
    return GS_OK;
}

gs_cuda_target gs_cuda_target_of(const gs_cuda_driver *d, int major, int minor)
{
    gs_cuda_target t = {.architecture = major * 10 + minor};
    int count = 0, newest = 0;
    int *known = NULL;
    if (d->architecture_count(&count) == 0 && count > 0 && (known = gs_calloc((size_t)count, sizeof(*known))) != NULL &&
        d->architectures(known) == 0)
        for (int i = 0; i < count; i++)
            newest = known[i] <= t.architecture ? GS_MAX(newest, known[i]) : newest;
    gs_free(known);
    if (newest == 0) /* the compiler says what it lacks */
        return t;
    t.intermediate = newest / 10 != major;
    t.architecture = newest;
    return t;
}

gs_status gs_cuda_compile(char **image, size_t *bytes, const gs_cuda_driver *d, int major, int minor, const char *text)
{
    static const char *const header[] = {gs_cuda_walk_text}, *const header_name[] = {"walk.inc"};
    char architecture[64];
    const char *const options[] = {architecture, STANDARD, VECTORS};
    GS_FREED char *const whole = whole_text(text);
    gs_cu_handle program = NULL;
    gs_status st;

    if (whole == NULL)
        return no_memory();
    const gs_cuda_target target = gs_cuda_target_of(d, major, minor);
    snprintf(architecture, sizeof(architecture), "--gpu-architecture=%s_%d", target.intermediate ? "compute" : "sm",
             target.architecture);
    if (d->program_create(&program, whole, "gnnstream.cu", 1, header, header_name) != 0)
        st = no_memory();
    else if (d->program_compile(program, (int)GS_ARRAY_LEN(options), options) != 0)
        st = complain(d, program);
    else
        st = take_image(image, bytes, d, program, target.intermediate);
    if (program != NULL)
        d->program_destroy(&program);
    return st;
}

/* ---- the files ---- */

/* The folder, made where it is not there; NULL where there can be none. */
static char *cache_folder(void)
{
    const char *const own = getenv("GS_CUDA_CACHE"), *const cache = getenv("XDG_CACHE_HOME"),
                      *const home = getenv("HOME");
    static const char *const below[] = {".cache", "gnnstream", "cuda"};
    char *path;

    if (own != NULL && own[0] != '\0')
        return gs_mkdir(own) == GS_OK ? gs_strdup(own) : NULL;
    const bool xdg = cache != NULL && cache[0] == '/';
    if (!xdg && (home == NULL || home[0] != '/'))
        return NULL;
    path = gs_strdup(xdg ? cache : home);
    for (size_t i = xdg ? 1 : 0; i < GS_ARRAY_LEN(below) && path != NULL; i++) {
        char *const next = gs_path_join(path, below[i]);
        gs_free(path);
        path = next;
        if (path != NULL && gs_mkdir(path) != GS_OK) {
            gs_free(path);
            path = NULL;
        }
    }
    return path;
}

static char *cache_file(const gs_cuda_driver *d, int major, int minor, const char *text)
{
    char name[96];
    int release = 0, update = 0;
    GS_FREED char *const folder = cache_folder();
    if (folder == NULL)
        return NULL;
    d->compiler_version(&release, &update);
    snprintf(name, sizeof(name), "%016llx%016llx-sm%d%d-%d.%d.cubin",
             (unsigned long long)(gs_hash64(gs_cuda_common_text, strlen(gs_cuda_common_text)) ^
                                  gs_hash64(gs_cuda_walk_text, strlen(gs_cuda_walk_text)) ^
                                  gs_hash64(STANDARD VECTORS, strlen(STANDARD VECTORS))),
             (unsigned long long)gs_hash64(text, strlen(text)), major, minor, release, update);
    return gs_path_join(folder, name);
}

/* Behind the image in its file. The driver is told no length: of a file that was cut short it would read on. */
typedef struct trailer {
    uint64_t bytes, hash;
} trailer;

static bool read_image(char **image, const char *path)
{
    uint64_t bytes = 0;
    trailer t;

    if (!gs_path_exists(path) || gs_file_read_all(image, &bytes, path, IMAGE_MOST) != GS_OK)
        return false;
    if (bytes > sizeof(t)) {
        memcpy(&t, *image + bytes - sizeof(t), sizeof(t));
        if (t.bytes == bytes - sizeof(t) && t.hash == gs_hash64(*image, t.bytes))
            return true;
    }
    gs_free(*image);
    *image = NULL;
    return false;
}

/* A full disk only costs the next run a compilation. Of runs that begin together, the last one's stays, whole. */
static void keep_image(const char *path, const char *image, uint64_t bytes)
{
    const trailer t = {bytes, gs_hash64(image, bytes)};
    GS_FREED char *const whole = gs_malloc(bytes + sizeof(t));
    if (whole == NULL)
        return;
    memcpy(whole, image, bytes);
    memcpy(whole + bytes, &t, sizeof(t));
    (void)gs_file_write_atomic(path, whole, bytes + sizeof(t));
}

/* The same, from the file where it is kept, and loaded into the current context. */
static gs_status load_module(gs_cu_handle *module, const gs_cuda_driver *d, int major, int minor, const char *text)
{
    GS_FREED char *const path = cache_file(d, major, minor, text);
    GS_FREED char *image = NULL;
    size_t bytes = 0;

    /* The image that is kept may be damaged, or of another driver: then it is made again. */
    if (path != NULL && read_image(&image, path) && d->module_load(module, image) == 0)
        return GS_OK;
    gs_free(image);
    image = NULL;
    GS_TRY(gs_cuda_compile(&image, &bytes, d, major, minor, text));
    const gs_cu_result r = d->module_load(module, image);
    const char *name = NULL;
    if (r != 0)
        return gs_fail(
            GS_EDEVICE,
            "device cuda: the GPU's driver does not take the kernels of this model (%s); is it older than the toolkit?",
            d->error_name(r, &name) == 0 && name != NULL ? name : "unknown error");
    if (path != NULL)
        keep_image(path, image, bytes);
    return GS_OK;
}

/* ---- modules to kernels ---- */

typedef struct writer {
    FILE *out;
    gs_cuda_code *code;
    bool tf32; /* products of edges' rows may round so */
} writer;

/* Kernels there can be: a few for each stage. */
static uint32_t most_kernels(const gs_program *p)
{
    uint32_t n = 1;
    for (uint32_t s = 0; s < p->stages; s++)
        n += 4 * GS_STAGE_SUMS + p->stage[s].instrs + p->stage[s].edge_instrs;
    return n;
}

static gs_row_sums kernel_of(const gs_program *p, const gs_stage *s, uint32_t sum, const gs_row_sum *r)
{
    const uint32_t from = p->array[r->array].width, to = s->reg[s->sum[sum].reg].width, width = GS_MIN(from, to);
    return (gs_row_sums){.by = r->types, .width = width, .dtype = p->array[r->array].dtype,
                         .types = GS_MAX(from, to) / width, .scaled = r->scale != GS_NONE};
}

static void write_rows(writer *w, const gs_program *p, const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++) {
        uint32_t at = 0;
        gs_row_sum of;
        if (!gs_sum_of_rows(&of, s, i))
            continue;
        const gs_row_sums rows = kernel_of(p, s, i, &of);
        while (at < w->code->edges && !gs_cuda_sums_rows(&w->code->edge[at], &rows))
            at++;
        if (at < w->code->edges)
            continue;
        w->code->edge[w->code->edges].stage = GS_NONE;
        gs_generate_rows(w->out, &w->code->edge[w->code->edges++].k, &rows);
    }
}

static gs_status write_edges(writer *w, const gs_program *p, uint32_t stage)
{
    gs_edge_kernel kernel[GS_STAGE_SUMS];
    uint32_t n = 0;
    GS_TRY(gs_generate_edges(w->out, kernel, &n, p, stage));
    for (uint32_t i = 0; i < n; i++)
        w->code->edge[w->code->edges++] = (gs_cuda_edge_code){.k = kernel[i], .stage = stage};
    return GS_OK;
}

static gs_status write_vertices(writer *w, const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];
    for (uint32_t i = 0; i < s->instrs;) {
        if (!gs_generates_vertex(s, &s->instr[i])) {
            i++;
            continue;
        }
        gs_vertex_kernel *const v = &w->code->vertex[w->code->vertices++].k;
        GS_TRY(gs_generate_vertex(w->out, v, p, stage, i));
        i = v->end;
    }
    return GS_OK;
}

static gs_status write_sequence(writer *w, const gs_program *p, const gs_stage *s)
{
    const uint32_t width = p->param[s->sum[0].weight].cols;
    for (uint32_t i = 0; i < w->code->sequences; i++)
        if (w->code->sequence[i].k.width == width)
            return GS_OK;
    if (w->code->sequences == 0)
        fputs(gs_cuda_sequence_text, w->out);
    return gs_generate_sequence(w->out, &w->code->sequence[w->code->sequences++].k, width);
}

/* Of a step of a plan of typed products: what it keeps, or multiplies. */
static gs_status write_step(writer *w, const gs_program *p, const gs_typed_plan *b, const gs_typed_step *step)
{
    const gs_edge_reg *const reg = p->stage[b->stage].edge_reg;
    const gs_typed_kind kind = step->kind == GS_TYPED_ADD_OUTER ? GS_TYPED_OUTER
                               : step->transposed               ? GS_TYPED_PRODUCT_T
                                                                : GS_TYPED_PRODUCT;
    if (step->kind == GS_TYPED_KEEP) {
        gs_cuda_edge_code *const keep = &w->code->edge[w->code->edges++];
        keep->stage = b->stage;
        return gs_generate_keep(w->out, &keep->k, p, b->stage, step->x);
    }
    for (uint32_t i = 0; i < w->code->typed_codes; i++)
        if (gs_cuda_makes_typed(&w->code->typed_code[i], kind, reg[step->x].width, reg[step->y].width))
            return GS_OK;
    gs_generate_typed(w->out, &w->code->typed_code[w->code->typed_codes++].k, kind, reg[step->x].width,
                      reg[step->y].width, w->tf32);
    return GS_OK;
}

static gs_status write_typed(writer *w, const gs_program *p, uint32_t stage)
{
    gs_typed_plan *const b = &w->code->typed[w->code->typed_stages];
    GS_TRY(gs_typed_plan_stage(b, p, stage));
    if (w->code->typed_stages++ == 0)
        fputs(gs_cuda_typed_text, w->out);
    for (uint32_t i = 0; i < b->steps; i++)
        GS_TRY(write_step(w, p, b, &b->step[i]));
    return GS_OK;
}

static gs_status check_instrs(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->instrs; i++)
        if (!gs_op_is(s->instr[i].op, GS_FACT_VERTEX))
            return gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": %s is not there; use .device cpu", s->name,
                           gs_op_name(s->instr[i].op));
    for (uint32_t i = 0; i < s->sums; i++) /* programs of GPUs are compiled without them */
        if (gs_sum_is_held(s->sum[i].kind))
            return gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": who has a maximum is not kept there; use "
                           ".device cpu", s->name);
    return GS_OK;
}

static gs_status write_stage(writer *w, const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];

    GS_TRY(check_instrs(s));
    write_rows(w, p, s);
    GS_TRY(s->sums > 0 && gs_sum_is_sequence(&s->sum[0]) ? write_sequence(w, p, s) : write_edges(w, p, stage));
    if (gs_stage_has_products(s))
        GS_TRY(write_typed(w, p, stage));
    return write_vertices(w, p, stage);
}

gs_status gs_cuda_write_code(gs_cuda_code *k, char **text, const gs_program *p, bool tf32)
{
    size_t bytes = 0;
    writer w = {.out = open_memstream(text, &bytes), .tf32 = tf32, .code = k};
    gs_status st = GS_OK;

    *k = (gs_cuda_code){.edge = gs_calloc(most_kernels(p), sizeof(*k->edge)),
                        .vertex = gs_calloc(most_kernels(p), sizeof(*k->vertex)),
                        .sequence = gs_calloc(p->stages + 1, sizeof(*k->sequence)),
                        .typed = gs_calloc(p->stages + 1, sizeof(*k->typed)),
                        .typed_code = gs_calloc(most_kernels(p), sizeof(*k->typed_code))};
    if (w.out == NULL || k->edge == NULL || k->vertex == NULL || k->sequence == NULL || k->typed == NULL ||
        k->typed_code == NULL)
        st = no_memory();
    for (uint32_t s = 0; s < p->stages && st == GS_OK; s++)
        st = write_stage(&w, p, s);
    if (w.out != NULL && fclose(w.out) != 0 && st == GS_OK)
        st = no_memory();
    return st;
}

void gs_cuda_free_code(gs_cuda_code *k)
{
    for (uint32_t i = 0; i < k->edges; i++)
        gs_free(k->edge[i].held);
    gs_free(k->edge);
    gs_free(k->vertex);
    gs_free(k->sequence);
    gs_free(k->typed);
    gs_free(k->typed_code);
    *k = (gs_cuda_code){.module = NULL};
}

/* ---- modules ---- */

#define X(which, name) #name,
static const char *const fixed_names[] = {GS_CUDA_FIXED_MAP(X)};
static const char *const typed_names[] = {GS_CUDA_TYPED_MAP(X)};
#undef X

const char *gs_cuda_fixed_name(int which) { return fixed_names[which]; }
const char *gs_cuda_typed_name(int which) { return typed_names[which]; }

gs_status gs_cuda_launch_fixed(gs_cuda *c, enum gs_cuda_fixed which, uint64_t blocks_x, uint32_t blocks_y,
                               uint32_t shared, void *args)
{
    return gs_cuda_launch(c, c->fixed[which], blocks_x, blocks_y, shared, args, fixed_names[which]);
}

gs_status gs_cuda_launch_alone(gs_cuda *c, enum gs_cuda_fixed which, uint64_t lanes, void *args)
{
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch_fixed(c, which, gs_cuda_blocks(lanes), 1, 0, args);
    return gs_cuda_end(c, st);
}

gs_status gs_cuda_load(gs_cuda *c, gs_cu_handle *module, const char *text)
{
    const gs_status st = load_module(module, c->d, c->major, c->minor, text);
    /* it may have failed of what was before */
    const gs_status before = st == GS_EDEVICE ? gs_cuda_synchronize(c) : GS_OK;
    return before != GS_OK ? before : st;
}

gs_status gs_cuda_load_fixed(gs_cuda *c)
{
    GS_TRY(gs_cuda_load(c, &c->fixed_module, gs_cuda_fixed_text));
    for (int i = 0; i < GS_CUDA_FIXED_COUNT; i++)
        GS_TRY(gs_cuda_check(c, c->d->module_function(&c->fixed[i], c->fixed_module, fixed_names[i]), fixed_names[i]));
    return GS_OK;
}

static gs_status find(const gs_cuda *c, gs_cu_handle *function, const char *name)
{
    return gs_cuda_check(c, c->d->module_function(function, c->code.module, name), name);
}

static gs_status find_sequences(gs_cuda *c)
{
    gs_cuda_code *const k = &c->code;
    for (uint32_t i = 0; i < k->sequences; i++) {
        gs_cuda_sequence_code *const s = &k->sequence[i];
        char back[64];
        snprintf(back, sizeof(back), "%s_back", s->k.name);
        GS_TRY(find(c, &s->forward, s->k.name));
        GS_TRY(find(c, &s->window, back));
    }
    if (k->sequences > 0)
        GS_TRY(find(c, &k->transpose_weight, "gs_transpose_weight"));
    if (k->sequences > 0)
        GS_TRY(find(c, &k->scatter_gates, "gs_scatter_gates"));
    return GS_OK;
}

static gs_status find_typed(gs_cuda *c)
{
    gs_cuda_code *const k = &c->code;
    for (uint32_t i = 0; i < k->typed_codes; i++)
        GS_TRY(find(c, &k->typed_code[i].run, k->typed_code[i].k.name));
    for (uint32_t i = 0; i < GS_CUDA_TYPED_FIXED_COUNT && k->typed_stages > 0; i++)
        GS_TRY(find(c, &k->typed_fixed[i], typed_names[i]));
    return GS_OK;
}

gs_status gs_cuda_find_code(gs_cuda *c)
{
    gs_cuda_code *const k = &c->code;
    GS_TRY(find_typed(c));
    for (uint32_t i = 0; i < k->edges; i++) {
        gs_cuda_edge_code *const e = &k->edge[i];
        char merge[64];
        snprintf(merge, sizeof(merge), "%s_merge", e->k.name);
        GS_TRY(find(c, &e->run, e->k.name));
        if (!e->k.keeps)
            GS_TRY(find(c, &e->merge, merge));
        if ((e->held = gs_calloc(1, sizeof(*e->held))) == NULL)
            GS_TRY(no_memory());
    }
    for (uint32_t i = 0; i < k->vertices; i++)
        GS_TRY(find(c, &k->vertex[i].run, k->vertex[i].k.name));
    return find_sequences(c);
}
