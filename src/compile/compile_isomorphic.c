/* compile_isomorphic.c - which parameters stand in the same surroundings?
 *
 * Colours are refined as Weisfeiler and Lehman do it: a node's is made of its own, its inputs' in their order and its
 * users' in any, a few times over. Names do not count, shapes do.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/compile_internal.h"

#define ROUNDS 4 /* steps along the graph that a colour knows of */

static uint64_t first_colour(const gs_node *n)
{
    uint64_t h = gs_mix(gs_mix(gs_mix(1, (uint64_t)n->op), n->width), (uint64_t)n->type);
    h = gs_mix(gs_mix(gs_mix(h, n->rows), n->dims), (uint64_t)n->dtype);
    return gs_mix(gs_mix(h, n->fixed), n->op == GS_OP_PARAM ? n->shape_dims : 0);
}

static void refine(const gs_ir *ir, const uint64_t *old, uint64_t *new)
{
    const uint32_t n = gs_ir_count(ir);

    memset(new, 0, n * sizeof(*new));
    for (uint32_t i = 0; i < n; i++) /* users: a sum, as their order says nothing */
        for (uint32_t k = 0; k < gs_node_inputs(gs_ir_node(ir, i)); k++)
            new[gs_ir_node(ir, i)->in[k]] += gs_mix(old[i], k + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = gs_mix(old[i], new[i]);
        for (uint32_t k = 0; k < gs_node_inputs(gs_ir_node(ir, i)); k++)
            h = gs_mix(h, old[gs_ir_node(ir, i)->in[k]]);
        new[i] = h;
    }
}

/* Numbers colours in the order in which weights have them. A table of twice as many places finds those seen. */
static uint32_t number(uint32_t *isomorphic, const uint64_t *colour, const uint32_t *weight, uint32_t weights,
                       uint32_t *slot, uint32_t slots)
{
    uint32_t classes = 0;

    memset(slot, 0xff, slots * sizeof(*slot));
    for (uint32_t i = 0; i < weights; i++) {
        uint32_t at = (uint32_t)(colour[weight[i]] >> 32) & (slots - 1);
        while (slot[at] != UINT32_MAX && colour[weight[slot[at]]] != colour[weight[i]])
            at = (at + 1) & (slots - 1);
        if (slot[at] == UINT32_MAX) {
            slot[at] = i;
            isomorphic[i] = classes++;
        } else {
            isomorphic[i] = isomorphic[slot[at]];
        }
    }
    return classes;
}

uint32_t gs_compile__isomorphic(uint32_t *isomorphic, const gs_ir *ir, const uint32_t *weight, uint32_t weights)
{
    const uint32_t n = gs_ir_count(ir);
    uint32_t slots = 16, classes = 0;
    while (slots < 2 * weights)
        slots *= 2;
    uint64_t *colour = gs_malloc_array(n, sizeof(*colour)), *next = gs_malloc_array(n, sizeof(*next));
    uint32_t *const slot = gs_malloc_array(slots, sizeof(*slot));

    if (colour != NULL && next != NULL && slot != NULL) {
        for (uint32_t i = 0; i < n; i++)
            colour[i] = first_colour(gs_ir_node(ir, i));
        for (int r = 0; r < ROUNDS; r++) {
            refine(ir, colour, next);
            uint64_t *const old = colour;
            colour = next;
            next = old;
        }
        classes = number(isomorphic, colour, weight, weights, slot, slots);
    }
    gs_free(colour);
    gs_free(next);
    gs_free(slot);
    return classes;
}
