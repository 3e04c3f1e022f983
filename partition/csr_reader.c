#include "partition/csr_reader.h"

#include "base/alloc.h"
#include "base/size.h"

gs_status gs_csr__alloc(gs_csr_reader *r, uint64_t piece, const char *path)
{
    r->piece = piece;
    r->column = gs_malloc_array(piece, sizeof(*r->column));
    r->value = gs_malloc_array(piece, sizeof(*r->value));
    r->end = gs_malloc_array(piece, sizeof(*r->end));
    r->raw = gs_malloc_array(piece, 8);
    if (r->column == NULL || r->value == NULL || r->end == NULL || r->raw == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    return GS_OK;
}

void gs_csr__free(gs_csr_reader *r)
{
    gs_free(r->column);
    gs_free(r->value);
    gs_free(r->end);
    gs_free(r->raw);
}

gs_status gs_csr__bound(gs_csr_reader *r, uint64_t row, uint64_t before, uint64_t *at)
{
    const gs_part_file *const p = r->indptr;
    const uint64_t entries = r->indices->npy.shape[0];

    if (row >= r->first_end + r->ends) {
        const uint64_t count = GS_MIN(r->piece, r->rows + 1 - row);
        const gs_status st = gs_npy_read_rows(&p->npy, r->raw, row, count, p->path);
        if (st != GS_OK)
            return st;
        gs_part__to_i64(r->end, r->raw, p->npy.dtype, count);
        r->first_end = row;
        r->ends = count;
    }
    const int64_t v = r->end[row - r->first_end];
    if (v < (int64_t)before || (uint64_t)v > entries || (row == 0 && v != 0) ||
        (row == r->rows && (uint64_t)v != entries))
        return gs_fail(GS_EFORMAT, "%s: row %llu: %s does not fit between %llu and the %llu entries", p->path,
                       (unsigned long long)row, GS_PART_I64(v), (unsigned long long)before,
                       (unsigned long long)entries);
    *at = (uint64_t)v;
    return GS_OK;
}

gs_status gs_csr__values(gs_csr_reader *r, uint64_t at, uint64_t count)
{
    const gs_part_file *const d = r->data;
    const gs_status st = gs_npy_read_rows(&d->npy, r->raw, at, count, d->path);

    if (st == GS_OK)
        gs_part__to_f32(r->value, r->raw, d->npy.dtype, count);
    return st;
}

gs_status gs_csr__entries(gs_csr_reader *r, uint64_t at, bool values)
{
    const gs_part_file *const x = r->indices;
    const uint64_t count = GS_MIN(r->piece, x->npy.shape[0] - at);
    const gs_status st = gs_npy_read_rows(&x->npy, r->raw, at, count, x->path);

    if (st != GS_OK)
        return st;
    gs_part__to_i64(r->column, r->raw, x->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (r->column[i] < 0 || (uint64_t)r->column[i] >= r->columns)
            return gs_fail(GS_EFORMAT, "%s: row %llu: column %s is not one of the %llu %s", x->path,
                           (unsigned long long)(at + i), GS_PART_I64(r->column[i]), (unsigned long long)r->columns,
                           r->columns_are);
    r->from = at;
    r->have = count;
    return values ? gs_csr__values(r, at, count) : GS_OK;
}
