/* compile_tables.c - learned tables of a program, and the arrays of their gradients. */
#include <string.h>

#include "base/alloc.h"
#include "compile/compile_internal.h"

/* The table of this name, or GS_NONE. */
static uint32_t find_table(const gs_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->tables; i++)
        if (strcmp(p->table[i].name, name) == 0)
            return i;
    return GS_NONE;
}

gs_status gs_compile__table(gs_program *p, uint32_t *array, const gs_node *n)
{
    const uint32_t old = find_table(p, gs_node_table(n));
    gs_array a = {.dtype = GS_F32, .width = n->width, .store_id = -1, .lasting = true};
    gs_table t = {.width = n->width, .initial = n->initial, .gradient = GS_NONE,
                  .state = {GS_NONE, GS_NONE}, .best = GS_NONE};
    gs_table *tables;
    gs_status st;

    if (old != GS_NONE) {
        *array = p->table[old].array;
        return p->table[old].width == n->width
                   ? GS_OK
                   : gs_fail(GS_EINVAL, "two passes have '%s' in different shapes", p->table[old].name);
    }
    snprintf(t.name, sizeof(t.name), "%s", gs_node_table(n));
    snprintf(a.name, sizeof(a.name), "%s", n->name);
    if ((tables = gs_realloc(p->table, (p->tables + 1ull) * sizeof(t))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the compiled program");
    p->table = tables;
    if ((st = gs_program_add_array(p, &t.array, &a)) != GS_OK)
        return st;
    *array = t.array;
    p->table[p->tables++] = t;
    return GS_OK;
}

gs_status gs_compile__table_gradient(gs_program *p, uint32_t *array, const gs_ir *ir, uint32_t v)
{
    gs_array a = {.dtype = GS_F32, .width = gs_ir_node(ir, v)->width, .store_id = -1, .result = true};
    gs_status st = GS_OK;

    *array = GS_NONE;
    for (uint32_t o = 0; o < gs_ir_outputs(ir) && st == GS_OK; o++) {
        const gs_output *const out = gs_ir_output(ir, o);
        if (out->kind != GS_OUTPUT_GRAD_ROWS || out->node != v)
            continue;
        const uint32_t t = find_table(p, gs_node_table(gs_ir_node(ir, out->param)));
        snprintf(a.name, sizeof(a.name), "d.%.60s", p->table[t].name);
        if (*array == GS_NONE) /* of several tables whose gradients are the same there is one */
            st = gs_program_add_array(p, array, &a);
        p->table[t].gradient = *array;
    }
    return st;
}
