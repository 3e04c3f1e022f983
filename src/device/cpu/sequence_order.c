/* The order of a target's steps in a chunk whose edges have types.
 *
 * Such edges are sorted by type first and by operand within a type, but a sequence goes by operand alone. The step of a
 * rank is found by counting, with binary searches in the types' runs: nothing is sorted, and nothing kept.
 * Edges of one operand bring the same row, so their order among each other is nobody's business.
 */
#include "base/size.h"
#include "device/cpu/sequence.h"

static uint32_t number_at(const void *p, uint32_t bytes, uint32_t i)
{
    return bytes == 1 ? ((const uint8_t *)p)[i] : bytes == 2 ? ((const uint16_t *)p)[i] : ((const uint32_t *)p)[i];
}

/* First of the ascending numbers [from, to) that is at least `v`, or `to`. */
static uint32_t first_from(const void *p, uint32_t bytes, uint32_t from, uint32_t to, uint64_t v)
{
    while (from < to) {
        const uint32_t mid = from + (to - from) / 2;
        if (number_at(p, bytes, mid) < v)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Edges of target t with operands below `v`; *next: the least operand that is not, UINT32_MAX where there is none. */
static uint32_t count_below(const gs_edges *e, uint32_t t, uint64_t v, uint32_t *next)
{
    uint32_t count = 0;
    *next = UINT32_MAX;
    for (uint32_t from = e->start[t], to; from < e->start[t + 1]; from = to) {
        const uint64_t type = number_at(e->type, e->type_bytes, from);
        to = first_from(e->type, e->type_bytes, from, e->start[t + 1], type + 1);
        const uint32_t at = first_from(e->index, e->index_bytes, from, to, v);
        count += at - from;
        if (at < to)
            *next = GS_MIN(*next, number_at(e->index, e->index_bytes, at));
    }
    return count;
}

/* The operand of the edge of this rank. */
static uint32_t operand_of_rank(const gs_edges *e, uint32_t t, uint32_t rank)
{
    uint64_t low = 0, high = e->index_bytes == 2 ? UINT16_MAX : UINT32_MAX;
    uint32_t next;
    while (low < high) { /* the least v with more than `rank` edges below v + 1 */
        const uint64_t mid = low + (high - low) / 2;
        if (count_below(e, t, mid + 1, &next) > rank)
            high = mid;
        else
            low = mid + 1;
    }
    return (uint32_t)low;
}

void gs_cpu__sequence_rows(const gs_edges *e, uint32_t t, uint32_t from, uint32_t steps, uint32_t *out,
                           uint32_t stride)
{
    uint32_t operand = operand_of_rank(e, t, from), next;
    for (uint32_t s = 0; s < steps; operand = next) {
        const uint32_t end = count_below(e, t, (uint64_t)operand + 1, &next) - from;
        for (; s < end && s < steps; s++)
            out[(size_t)s * stride] = operand;
    }
}
