/* fixed.cu - kernels that no program changes: frames of sums, sums of columns, the loss, the optimiser. */
#include "common.cu"

/* ---- frames ---- */

GS_KERNEL(gs_add, gs_add_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i >= a.count)
        return;
    const float x = a.how == GS_ADD_BF16  ? gs_of_bf16(a.src, i)
                    : a.how == GS_ADD_F16 ? gs_of_f16(a.src, i)
                                          : ((const float *)a.src)[i];
    a.acc[i] = gs_plus(a.acc[i], a.scale == 0 ? x : gs_times(x, a.scale[i / a.width]));
}

GS_KERNEL(gs_begin, gs_frame_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i < a.count)
        a.acc[i] = gs_float_of_bits(a.neutral);
    if (i < a.heads_count) {
        a.maximum[i] = gs_float_of_bits(0xff800000u);
        a.norm[i] = -0.0f; /* adding anything but that makes it 0 or more */
    }
}

/* Of a maximum or minimum: no edges give 0. */
GS_KERNEL(gs_finish_most, gs_frame_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i < a.count && gs_bits_of_float(a.acc[i]) == GS_NO_EDGE)
        a.acc[i] = 0;
}

/* No edges: the norm is -0, and the sum is 0; the logarithm gives -inf. A norm of 0: all scores are -inf. */
GS_KERNEL(gs_finish_attend, gs_frame_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i >= a.count)
        return;
    const float norm = a.norm[i / a.each];
    const int nothing = norm == 0 && (a.beside || gs_bits_of_float(norm) != 0);
    a.acc[i] *= norm > 0 ? 1.0f / norm : nothing ? 0.0f : gs_float_of_bits(0x7fc00000u);
}

GS_KERNEL(gs_finish_lse, gs_frame_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i < a.heads_count)
        a.maximum[i] += logf(a.norm[i]);
}

/* ---- what came from a disk ---- */

/* base/hash.c has the same. */
GS_DEVICE gs_u64 gs_mixed_word(gs_u64 word, gs_u64 at)
{
    gs_u64 x = word + (at + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

GS_KERNEL(gs_mark, gs_mark_args)
{
    GS_SHARED(shared);
    gs_u64 *const sums = (gs_u64 *)(void *)shared;
    const gs_u64 step = (gs_u64)gs_blocks_x() * GS_BLOCK_LANES;
    gs_u64 sum = 0;
    for (gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane(); i < a.words; i += step)
        sum += gs_mixed_word(a.from[i], i);
    sums[gs_lane()] = sum;
    gs_block_sync();
    for (gs_u32 k = 1; gs_lane() < 16 && k < GS_BLOCK_LANES / 16; k++)
        sums[gs_lane()] += sums[gs_lane() + 16 * k];
    gs_block_sync();
    for (gs_u32 k = 1; gs_lane() == 0 && k < 16; k++)
        sums[0] += sums[k];
    if (gs_lane() == 0)
        a.to[gs_block_x()] = sums[0];
}

/* ---- rows from many places ---- */

/* A lane's units, `lanes` apart: so many are loaded before the first is stored. */
#define GS_COPY_UNITS(type)                                                                                  \
    for (gs_u32 i = lane, count = bytes / (gs_u32)sizeof(type); i < count; i += GS_PICK_COPIES * lanes) {    \
        type v[GS_PICK_COPIES];                                                                              \
        GS_UNROLL for (gs_u32 k = 0; k < GS_PICK_COPIES; k++)                                                \
            if (i + k * lanes < count)                                                                       \
                v[k] = ((const type *)(const void *)from)[i + k * lanes];                                    \
        GS_UNROLL for (gs_u32 k = 0; k < GS_PICK_COPIES; k++)                                                \
            if (i + k * lanes < count)                                                                       \
                ((type *)(void *)to)[i + k * lanes] = v[k];                                                  \
    }

GS_DEVICE void gs_copy_row(gs_u8 *to, const gs_u8 *from, gs_u32 bytes, gs_u32 unit, gs_u32 lane, gs_u32 lanes)
{
    if (unit == 16) {
        GS_COPY_UNITS(gs_float4)
    } else if (unit == 8) {
        GS_COPY_UNITS(gs_float2)
    } else if (unit == 4) {
        GS_COPY_UNITS(gs_u32)
    } else if (unit == 2) {
        GS_COPY_UNITS(gs_u16)
    } else {
        GS_COPY_UNITS(gs_u8)
    }
}

/* A group of lanes a row. */
GS_KERNEL(gs_pick_rows, gs_pick_args)
{
    const gs_u64 row = (gs_u64)gs_block_x() * (GS_BLOCK_LANES / a.lanes) + gs_lane() / a.lanes;
    if (row >= a.rows)
        return;
    const gs_u32 place = a.place[row], device = place % a.devices;
    const gs_u8 *kept = a.kept[0]; /* picked, and not indexed: arguments would go to the stack */
    GS_UNROLL for (gs_u32 d = 1; d < GS_PICK_TABLES; d++)
        kept = device == d ? a.kept[d] : kept;
    const gs_u8 *const from = place < a.rows_kept ? kept + (gs_u64)(place / a.devices) * a.row_bytes
                                                  : a.sent + (gs_u64)(place - a.rows_kept - a.first_sent) * a.row_bytes;
    gs_copy_row(a.to + row * a.row_bytes, from, a.row_bytes, a.unit, gs_lane() % a.lanes, a.lanes);
}

/* The same, for a few rows of the host's: those whose bits are set. */
GS_KERNEL(gs_send_rows, gs_send_args)
{
    const gs_u64 group = (gs_u64)gs_block_x() * (GS_BLOCK_LANES / a.lanes) + gs_lane() / a.lanes,
                 first = group * GS_SEND_ROWS;
    if (first >= a.rows)
        return;
    const gs_u64 bits = a.bits[first / 64] >> (first % 64);
    for (gs_u32 r = 0; r < GS_SEND_ROWS; r++)
        if ((bits >> r & 1) != 0) {
            const gs_u64 at = (first + r) * a.row_bytes;
            gs_copy_row(a.to + at, a.from + at, a.row_bytes, a.unit, gs_lane() % a.lanes, a.lanes);
        }
}

/* ---- rows of another width ---- */

GS_DEVICE float gs_mixed(const gs_regroup_args *a, const float *from, gs_u32 j)
{
    const gs_u32 each = a->from_width / a->blocks, block = j / each;
    const gs_u32 to = a->to_width / each; /* blocks */
    float sum = 0;
    for (gs_u32 i = 0; i < a->blocks; i++)
        sum += a->other[a->how == GS_REGROUP_MIX ? (gs_u64)i * to + block : (gs_u64)block * a->blocks + i] *
               from[(gs_u64)i * each + j % each];
    return sum;
}

GS_KERNEL(gs_regroup_rows, gs_regroup_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i >= (gs_u64)a.rows * a.to_width)
        return;
    const gs_u32 j = (gs_u32)(i % a.to_width);
    const float *const from = a.from + i / a.to_width * a.from_width;
    const gs_u32 each = a.from_width / a.to_width; /* of FOLD and ACROSS */
    float sum = 0;
    if (a.how == GS_REGROUP_EXPAND) {
        sum = from[j / (a.to_width / a.from_width)];
    } else if (a.how == GS_REGROUP_TILE) {
        sum = from[j % a.from_width];
    } else if (a.how == GS_REGROUP_CONCAT) {
        const gs_u32 right = a.to_width - a.from_width;
        sum = j < a.from_width ? from[j] : a.other[i / a.to_width * right + (j - a.from_width)];
    } else if (a.how == GS_REGROUP_PART) {
        sum = from[a.first + j];
    } else if (a.how == GS_REGROUP_MOST) {
        sum = from[0];
        for (gs_u32 c = 1; c < a.from_width; c++)
            sum = gs_larger(from[c], sum);
    } else if (a.how == GS_REGROUP_MIX || a.how == GS_REGROUP_MIX_T) {
        sum = gs_mixed(&a, from, j);
    } else if (a.how == GS_REGROUP_FOLD) {
        for (gs_u32 c = 0; c < each; c++)
            sum += from[(gs_u64)j * each + c];
    } else {
        for (gs_u32 h = 0; h < each; h++)
            sum += from[(gs_u64)h * a.to_width + j];
    }
    a.to[i] = sum;
}

/* One block's dot product with another over a part's rows: a group of 32 lanes each. */
GS_KERNEL(gs_mix_parts, gs_mix_args)
{
    const gs_u32 pair = gs_block_x() * (GS_BLOCK_LANES / 32) + gs_lane() / 32, lane = gs_lane() % 32,
                 part = gs_block_y();
    const gs_u32 first = part * a.part_rows;
    const gs_u32 end = a.rows - first > a.part_rows ? first + a.part_rows : a.rows;
    float sum = 0;
    if (pair >= a.m * a.n)
        return;
    for (gs_u32 r = first; r < end; r++) {
        const float *const x = a.a + ((gs_u64)r * a.m + pair / a.n) * a.each;
        const float *const y = a.b + ((gs_u64)r * a.n + pair % a.n) * a.each;
        for (gs_u32 c = lane; c < a.each; c += 32)
            sum += x[c] * y[c];
    }
    sum = gs_group_sum(sum, 32, 32);
    if (lane == 0)
        a.partial[(gs_u64)part * a.m * a.n + pair] = sum;
}

/* Sums of whole rows: a group of 32 lanes each. */
GS_KERNEL(gs_row_sums, gs_regroup_args)
{
    const gs_u32 row = gs_block_x() * (GS_BLOCK_LANES / 32) + gs_lane() / 32, lane = gs_lane() % 32;
    float sum = 0;
    if (row >= a.rows)
        return;
    for (gs_u32 c = lane; c < a.from_width; c += 32)
        sum += a.from[(gs_u64)row * a.from_width + c];
    sum = gs_group_sum(sum, 32, 32);
    if (lane == 0)
        a.to[row] = sum;
}

/* ---- sums of columns ---- */

/* A block takes 32 columns of a part, each by 8 lanes that go over its rows in turns, so that their loads are under way
 * together. */
#define GS_COLUMN_LANES (GS_BLOCK_LANES / GS_BLOCK_COLUMNS)

GS_KERNEL(gs_colsum_parts, gs_colsum_args)
{
    GS_SHARED(shared);
    const gs_u32 lane = gs_lane(), column = gs_block_x() * GS_BLOCK_COLUMNS + lane % GS_BLOCK_COLUMNS,
                 part = gs_block_y();
    const gs_u32 first = part * a.part_rows;
    const gs_u32 end = a.rows - first > a.part_rows ? first + a.part_rows : a.rows;
    float sum = 0;
    for (gs_u32 r = first + lane / GS_BLOCK_COLUMNS; r < end && column < a.width; r += GS_COLUMN_LANES)
        sum += a.from[(gs_u64)r * a.width + column];
    shared[lane] = sum;
    gs_block_sync();
    if (lane >= GS_BLOCK_COLUMNS || column >= a.width)
        return;
    for (gs_u32 i = 1; i < GS_COLUMN_LANES; i++)
        sum += shared[i * GS_BLOCK_COLUMNS + lane];
    a.partial[(gs_u64)part * a.width + column] = sum;
}

GS_KERNEL(gs_colsum_total, gs_colsum_args)
{
    const gs_u32 column = gs_block_x() * GS_BLOCK_LANES + gs_lane();
    double sum = 0;
    if (column >= a.width)
        return;
    for (gs_u32 p = 0; p < a.parts; p++)
        sum += (double)a.partial[(gs_u64)p * a.width + column];
    a.grad[column] += (float)sum;
}

/* ---- statistics of columns ---- */

/* In float64, where squares of float32 are exact. Lanes share the rows as in gs_colsum_parts. */
GS_KERNEL(gs_moments_parts, gs_moments_args)
{
    GS_SHARED(shared);
    double *const sums = (double *)(void *)shared, *const of_squares = sums + GS_BLOCK_LANES;
    const gs_u32 lane = gs_lane(), column = gs_block_x() * GS_BLOCK_COLUMNS + lane % GS_BLOCK_COLUMNS,
                 part = gs_block_y();
    const gs_u32 first = part * a.part_rows;
    const gs_u32 end = a.rows - first > a.part_rows ? first + a.part_rows : a.rows;
    double sum = 0, squares = 0;
    for (gs_u32 r = first + lane / GS_BLOCK_COLUMNS; r < end && column < a.width; r += GS_COLUMN_LANES) {
        const double x = (double)a.from[(gs_u64)r * a.width + column];
        sum += x;
        squares += x * x;
    }
    sums[lane] = sum;
    of_squares[lane] = squares;
    gs_block_sync();
    if (lane >= GS_BLOCK_COLUMNS || column >= a.width)
        return;
    for (gs_u32 i = 1; i < GS_COLUMN_LANES; i++) {
        sum += sums[i * GS_BLOCK_COLUMNS + lane];
        squares += of_squares[i * GS_BLOCK_COLUMNS + lane];
    }
    a.partial[(gs_u64)part * 2 * a.width + column] = sum;
    a.partial[(gs_u64)part * 2 * a.width + a.width + column] = squares;
}

GS_KERNEL(gs_moments_total, gs_moments_args)
{
    const gs_u32 i = gs_block_x() * GS_BLOCK_LANES + gs_lane();
    double sum = 0;
    if (i >= 2 * a.width)
        return;
    for (gs_u32 p = 0; p < a.parts; p++)
        sum += a.partial[(gs_u64)p * 2 * a.width + i];
    a.sums[i] += sum;
}

GS_KERNEL(gs_statistic, gs_statistic_args)
{
    const gs_u32 c = gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (c >= a.width)
        return;
    const double mean = a.sums[c] / (double)a.rows, variance = a.sums[a.width + c] / (double)a.rows - mean * mean;
    a.to[c] = (float)(!a.variance ? mean : variance < 0 ? 0 : variance);
}

/* ---- loss ---- */

#define GS_TRAIN_SPLIT 1
#define GS_VALID_SPLIT 2

/* Lowest column of the largest logit, and the logit. */
GS_DEVICE float gs_largest(const float *row, gs_u32 classes, gs_u32 lane, gs_u32 *at)
{
    float most = gs_float_of_bits(0xff800000u);
    for (gs_u32 c = lane; c < classes; c += 32)
        most = row[c] > most ? row[c] : most;
    most = gs_group_max(most, 32);
    gs_u32 first = classes;
    for (gs_u32 c = lane; c < classes && first == classes; c += 32)
        first = row[c] == most ? c : first;
    for (gs_u32 by = 1; by < 32; by *= 2) { /* columns are below 2^24, which a float holds */
        const gs_u32 other = (gs_u32)gs_group_exchange((float)first, by, 32);
        first = other < first ? other : first;
    }
    *at = first;
    return most;
}

/* With weights of classes and smoothing: each class k has q[k] of the row (program.h). All lanes add up the same sums
 * in the same order. */
GS_DEVICE double gs_weighted_row(const gs_loss_args *a, const float *row, float *gradient, gs_u32 label, float most,
                                 float total, float scale, gs_u32 lane)
{
    const float own = (1.0f - a->smoothing) * (a->weight != 0 ? a->weight[label] : 1.0f);
    const float each = a->smoothing / (float)a->classes;
    const double log_total = log((double)total) + (double)most;
    double loss = (double)own * (log_total - (double)row[label]);
    float all = own;
    for (gs_u32 c = 0; each > 0 && c < a->classes; c++) {
        const float q = each * (a->weight != 0 ? a->weight[c] : 1.0f);
        all += q;
        loss += (double)q * (log_total - (double)row[c]);
    }
    for (gs_u32 c = lane; gradient != 0 && c < a->classes; c += 32) {
        const float q = (c == label ? own : 0.0f) + each * (a->weight != 0 ? a->weight[c] : 1.0f);
        gradient[c] = (expf(row[c] - most) / total * all - q) * scale;
    }
    return loss;
}

/* The loss of a row, the same in all lanes; `scale` times the gradient where it is wanted. */
GS_DEVICE double gs_row_loss(const gs_loss_args *a, const float *row, float *gradient, gs_u32 label, float most,
                              float scale, gs_u32 lane)
{
    float total = 0;
    for (gs_u32 c = lane; c < a->classes; c += 32)
        total += expf(row[c] - most);
    total = gs_group_sum(total, 32, 32);
    if (a->weight != 0 || a->smoothing > 0)
        return gs_weighted_row(a, row, gradient, label, most, total, scale, lane);
    const float inverse = 1.0f / total;
    for (gs_u32 c = lane; gradient != 0 && c < a->classes; c += 32) {
        const float p = expf(row[c] - most);
        gradient[c] = (c == label ? p - total : p) * inverse * scale;
    }
    return log((double)total) - ((double)row[label] - (double)most);
}

GS_DEVICE void gs_add_part(gs_loss_part *to, const gs_loss_part *from)
{
    to->loss_sum += from->loss_sum;
    to->valid_loss += from->valid_loss;
    for (int s = 0; s < 4; s++) {
        to->rows[s] += from->rows[s];
        to->correct[s] += from->correct[s];
    }
}

/* `taken`: the class that the row is taken for. */
GS_DEVICE void gs_count_class(const gs_loss_args *a, gs_u32 split, gs_u32 label, gs_u32 taken)
{
    gs_u32 *const of = a->found + (gs_u64)(split - 1) * a->classes * 3;
    if (taken == label) {
        gs_count_one(&of[(gs_u64)label * 3]);
        return;
    }
    if (taken < a->classes)
        gs_count_one(&of[(gs_u64)taken * 3 + 1]);
    gs_count_one(&of[(gs_u64)label * 3 + 2]);
}

/* A group of 32 lanes a row, blocks in steps of the grid; one part a group, in shared memory, then one a block. */
GS_KERNEL(gs_loss, gs_loss_args)
{
    GS_SHARED(shared);
    gs_loss_part *const part = (gs_loss_part *)(void *)shared;
    const gs_u32 groups = GS_BLOCK_LANES / 32, group = gs_lane() / 32, lane = gs_lane() % 32;
    gs_loss_part mine = {0, {0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    for (gs_u32 r = gs_block_x() * groups + group; r < a.rows; r += gs_blocks_x() * groups) {
        const float *const row = a.logits + (gs_u64)r * a.classes;
        float *const gradient = a.gradient == 0 ? (float *)0 : a.gradient + (gs_u64)r * a.classes;
        const int label = a.label[r];
        const gs_u32 split = a.split[r];
        const int counts = label >= 0 && (gs_u32)label < a.classes && split > 0 && split < 4;
        if (counts) {
            gs_u32 at;
            const float most = gs_largest(row, a.classes, lane, &at);
            mine.rows[split]++;
            mine.correct[split] += at == (gs_u32)label;
            if (lane == 0)
                gs_count_class(&a, split, (gs_u32)label, at);
            if (split == GS_TRAIN_SPLIT) {
                const float factor = a.factor != 0 ? a.factor[r] : 1.0f;
                mine.loss_sum +=
                    (double)factor * gs_row_loss(&a, row, gradient, (gs_u32)label, most, a.scale * factor, lane);
            } else if (split == GS_VALID_SPLIT) {
                mine.valid_loss += gs_row_loss(&a, row, (float *)0, (gs_u32)label, most, 1, lane);
            }
        }
        for (gs_u32 c = lane; gradient != 0 && !(counts && split == GS_TRAIN_SPLIT) && c < a.classes; c += 32)
            gradient[c] = 0;
    }
    if (lane == 0)
        part[group] = mine;
    gs_block_sync();
    if (gs_lane() > 0)
        return;
    for (gs_u32 g = 1; g < groups; g++)
        gs_add_part(&mine, &part[g]);
    a.part[gs_block_x()] = mine;
}

/* One block, a lane some of the parts: their order is that of their number alone. */
GS_KERNEL(gs_loss_total, gs_loss_args)
{
    GS_SHARED(shared);
    gs_loss_part *const sum = (gs_loss_part *)(void *)shared;
    const gs_u32 lane = gs_lane();
    gs_loss_part mine = {0, {0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    for (gs_u32 p = lane; p < a.parts; p += GS_BLOCK_LANES)
        gs_add_part(&mine, &a.part[p]);
    sum[lane] = mine;
    for (gs_u32 half = GS_BLOCK_LANES / 2; half > 0; half /= 2) {
        gs_block_sync();
        if (lane < half)
            gs_add_part(&sum[lane], &sum[lane + half]);
    }
    if (lane == 0)
        gs_add_part(a.total, &sum[0]);
}

/* ---- loss of labels one by one ---- */

GS_DEVICE int gs_is_nan(float x) { return (gs_bits_of_float(x) & 0x7fffffffu) > 0x7f800000u; }

/* NaN: not known. */
GS_DEVICE float gs_label_at(const gs_columns_args *a, gs_u64 at, gs_u32 row)
{
    const float none = gs_float_of_bits(0x7fc00000u);
    if (a->label_type == GS_LABEL_FLOATS)
        return ((const float *)a->label)[at];
    if (a->label_type == GS_LABEL_WHOLE)
        return ((const int *)a->label)[row] < 0 ? none : (float)((const int *)a->label)[row];
    return ((const gs_u8 *)a->label)[at] == 255 ? none : (float)((const gs_u8 *)a->label)[at];
}

typedef struct gs_entry {
    double loss;
    float slope;
} gs_entry;

/* softplus(-x) = max(-x, 0) + log(1 + e^-|x|) */
GS_DEVICE gs_entry gs_entry_of(const gs_columns_args *a, float x, float y, gs_u32 column)
{
    gs_entry t;
    const double off = (double)x - (double)y, size = off < 0 ? -off : off;
    if (a->loss == GS_COLUMNS_MSE) {
        t.loss = off * off;
        t.slope = 2.0f * (float)off;
        return t;
    }
    if (a->loss == GS_COLUMNS_HUBER) {
        t.loss = size <= 1 ? off * off / 2 : size - 0.5;
        t.slope = size <= 1 ? (float)off : off < 0 ? -1.0f : 1.0f;
        return t;
    }
    const float w = a->weight != 0 ? a->weight[column] : 1.0f, e = expf(x < 0 ? x : -x), inverse = 1.0f / (1.0f + e);
    const float softplus = (x < 0 ? -x : 0.0f) + log1pf(e);
    t.loss = (double)((1.0f - y) * x + (1.0f + (w - 1.0f) * y) * softplus);
    t.slope = (1.0f - y) * (x < 0 ? e : 1.0f) * inverse - w * y * (x < 0 ? 1.0f : e) * inverse;
    return t;
}

/* One label of a split: into the figures of its column. */
GS_DEVICE void gs_add_entry(double *sum, const gs_columns_args *a, gs_u32 split, float x, float y)
{
    double *const of = sum + 3 * (split - 1);
    if (a->numbers) {
        const double off = (double)x - (double)y;
        of[0] += off * off;
        of[1] += off < 0 ? -off : off;
        of[2] += 1;
    } else {
        of[0] += y != 0 && x > 0;
        of[1] += y == 0 && x > 0;
        of[2] += y != 0 && !(x > 0);
    }
    sum[GS_LOSS_KNOWN + split - 1] += 1;
}

/* Lanes share the rows as in gs_colsum_parts. */
GS_KERNEL(gs_loss_columns, gs_columns_args)
{
    GS_SHARED(shared);
    double *const sums = (double *)(void *)shared; /* [GS_LOSS_FIGURES][GS_BLOCK_LANES] */
    const gs_u32 lane = gs_lane(), column = gs_block_x() * GS_BLOCK_COLUMNS + lane % GS_BLOCK_COLUMNS,
                 part = gs_block_y();
    const gs_u32 first = part * a.part_rows;
    const gs_u32 end = a.rows - first > a.part_rows ? first + a.part_rows : a.rows;
    double sum[GS_LOSS_FIGURES];
    for (gs_u32 k = 0; k < GS_LOSS_FIGURES; k++)
        sum[k] = 0;
    for (gs_u32 r = first + lane / GS_BLOCK_COLUMNS; r < end && column < a.classes; r += GS_COLUMN_LANES) {
        const gs_u64 at = (gs_u64)r * a.classes + column;
        const gs_u32 split = a.split[r];
        const float x = a.logits[at], y = gs_label_at(&a, at, r);
        const int known = split > 0 && split < 4 && !gs_is_nan(y);
        gs_entry t = {0, 0};
        if (known)
            gs_add_entry(sum, &a, split, x, y);
        if (known && split == GS_TRAIN_SPLIT) {
            const float factor = a.factor != 0 ? a.factor[r] : 1.0f;
            t = gs_entry_of(&a, x, y, column);
            t.slope *= factor;
            sum[GS_LOSS_OF_TRAIN] += (double)factor * t.loss;
        }
        if (known && split == GS_VALID_SPLIT)
            sum[GS_LOSS_OF_VALID] += gs_entry_of(&a, x, y, column).loss;
        if (a.gradient != 0)
            a.gradient[at] = t.slope * a.scale;
    }
    for (gs_u32 k = 0; k < GS_LOSS_FIGURES; k++)
        sums[k * GS_BLOCK_LANES + lane] = sum[k];
    gs_block_sync();
    if (lane >= GS_BLOCK_COLUMNS || column >= a.classes)
        return;
    for (gs_u32 k = 0; k < GS_LOSS_FIGURES; k++) {
        for (gs_u32 i = 1; i < GS_COLUMN_LANES; i++)
            sum[k] += sums[k * GS_BLOCK_LANES + i * GS_BLOCK_COLUMNS + lane];
        a.partial[((gs_u64)part * GS_LOSS_FIGURES + k) * a.classes + column] = sum[k];
    }
}

GS_KERNEL(gs_loss_columns_total, gs_columns_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane(), n = (gs_u64)GS_LOSS_FIGURES * a.classes;
    double sum = 0;
    if (i >= n)
        return;
    for (gs_u32 p = 0; p < a.parts; p++)
        sum += a.partial[p * n + i];
    a.total[i] += sum;
}

/* ---- the optimiser ---- */

GS_KERNEL(gs_squares, gs_squares_args)
{
    const gs_u32 lane = gs_block_x() * GS_BLOCK_LANES + gs_lane();
    double sum = 0;
    for (gs_u64 at = 4 * (gs_u64)lane; at < a.count; at += 4 * GS_SQUARES) {
        float g[4];
        gs_load4(g, a.value + at);
        for (gs_u32 i = 0; i < 4; i++)
            sum += (double)g[i] * (double)g[i];
    }
    a.partial[lane] = sum;
}

/* A lane takes 16 bytes of each array. */
GS_KERNEL(gs_step, gs_step_args)
{
    const gs_u64 at = 4 * ((gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane());
    float w[4], g[4], m[4] = {0}, v[4] = {0};
    if (at >= a.count)
        return;
    gs_load4(w, a.value + at);
    gs_load4(g, a.grad + at);
    gs_store4(a.previous + at, w);
    if (a.update.states > 0)
        gs_load4(m, a.first + at);
    if (a.update.states > 1)
        gs_load4(v, a.second + at);
    for (gs_u32 i = 0; i < 4; i++)
        w[i] = gs_update_number(&a.update, a.update.rule, w[i], g[i], &m[i], &v[i]);
    if (a.update.states > 0)
        gs_store4(a.first + at, m);
    if (a.update.states > 1)
        gs_store4(a.second + at, v);
    gs_store4(a.value + at, w);
    for (gs_u32 i = 0; i < 4; i++)
        if ((gs_bits_of_float(w[i]) & 0x7F800000u) == 0x7F800000u)
            *a.fault = 1;
}
