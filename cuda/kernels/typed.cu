/* typed.cu - edges by the matrix of their type (WiseGraph's gTask): put in order by type, multiplied type by type, and
 * the gradients of the matrices. Edges that all have one matrix are edges of one type.
 *
 * A portion of a launch's edges is sorted by type, stably, a digit of types at a time: warps count the digits of
 * stretches of edges, the counts are added up, and warps put the edges of their stretches where they belong. Rows of
 * edges then stand, or are gathered, in that order. A block multiplies up to GS_TASK_ROWS rows of one type by its
 * matrix; a number of the result is a sum in the order of the row's columns, whatever rows are beside it. Of a gradient
 * a block adds up what at most GS_PIECE_ROWS rows of one type bring; a type's pieces are added in their order. So
 * nothing depends on what ran when.
 *
 * Included in programs that need it; `in`, `out` and the shapes of lanes are constants where these functions are used.
 */

#define GS_STEP 16u          /* columns of rows (of a product), or rows (of a gradient), in shared memory at a time */
#define GS_TASK_STRIDE (GS_TASK_ROWS + 8u) /* of shared memory: what a warp reads at once is in different banks */
#define GS_WIDE_STRIDE(columns) ((columns) + 8u)
#define GS_LANE_ROWS (GS_TASK_ROWS * 16 / GS_BLOCK_LANES) /* that a lane has, at most */

/* ---- the sort ---- */

GS_DEVICE gs_u32 gs_type_of(const gs_typed_args *a, gs_u32 edge)
{
    return a->type == 0 ? 0 : gs_number(a->type, a->type_bytes, a->first_edge + edge);
}

#define GS_SUMMED 16u /* lanes whose sum others add as one number */

/* Sum of what the lanes before this one have; `all` (GS_BLOCK_LANES, shared) is what is added up in. */
GS_DEVICE gs_u32 gs_before(gs_u32 *all, gs_u32 own)
{
    const gs_u32 lane = gs_lane(), first = lane / GS_SUMMED * GS_SUMMED;
    gs_u32 sum = 0;
    gs_block_sync();
    all[lane] = own;
    gs_block_sync();
    for (gs_u32 i = first; i < lane; i++)
        sum += all[i];
    gs_block_sync();
    if (lane - first == GS_SUMMED - 1)
        all[lane] = sum + own;
    gs_block_sync();
    for (gs_u32 i = GS_SUMMED - 1; i < first; i += GS_SUMMED)
        sum += all[i];
    return sum;
}

/* Of the n-th part of `count` things that are split among the block's lanes, where it begins. */
GS_DEVICE gs_u32 gs_share(gs_u32 count, gs_u32 n)
{
    const gs_u32 each = (count + GS_BLOCK_LANES - 1) / GS_BLOCK_LANES, at = n * each;
    return at < count ? at : count;
}

GS_DEVICE gs_u32 gs_sorted_edge(const gs_typed_args *a, gs_u32 i) { return a->from == 0 ? i : a->from[i]; }
GS_DEVICE gs_u32 gs_digit(const gs_typed_args *a, gs_u32 edge)
{
    return gs_type_of(a, edge) >> a->shift & (GS_SORT_DIGITS - 1);
}

GS_KERNEL(gs_typed_count, gs_typed_args)
{
    GS_SHARED(shared);
    gs_u32 *const count = (gs_u32 *)(void *)shared + gs_lane() / 32 * GS_SORT_DIGITS;
    const gs_u32 stretch = gs_block_x() * (GS_BLOCK_LANES / 32) + gs_lane() / 32;
    for (gs_u32 d = gs_lane() % 32; d < GS_SORT_DIGITS; d += 32)
        count[d] = 0;
    gs_group_sync(32);
    for (gs_u32 k = gs_lane() % 32; k < GS_SORT_EDGES && stretch * GS_SORT_EDGES + k < a.edges; k += 32)
        gs_count_one(count + gs_digit(&a, gs_sorted_edge(&a, stretch * GS_SORT_EDGES + k)));
    gs_group_sync(32);
    for (gs_u32 d = gs_lane() % 32; d < GS_SORT_DIGITS && stretch < a.stretches; d += 32)
        a.count[d * a.stretches + stretch] = count[d];
}

/* A block has a digit: its counts become those before each stretch. */
GS_KERNEL(gs_typed_totals, gs_typed_args)
{
    GS_SHARED(shared);
    gs_u32 *const count = a.count + gs_block_x() * a.stretches;
    const gs_u32 from = gs_share(a.stretches, gs_lane()), to = gs_share(a.stretches, gs_lane() + 1);
    gs_u32 sum = 0;
    for (gs_u32 s = from; s < to; s++)
        sum += count[s];
    gs_u32 before = gs_before((gs_u32 *)(void *)shared, sum);
    if (gs_lane() == GS_BLOCK_LANES - 1)
        a.total[gs_block_x()] = before + sum;
    for (gs_u32 s = from; s < to; s++) {
        const gs_u32 n = count[s];
        count[s] = before;
        before += n;
    }
}

/* Lanes of the warp with the same digit; none for those that have no edge. */
GS_DEVICE gs_u32 gs_peers(gs_u32 digit, int valid)
{
    gs_u32 peers = gs_warp_votes(valid);
    for (gs_u32 bit = 1; bit < GS_SORT_DIGITS; bit *= 2) {
        const gs_u32 set = gs_warp_votes((digit & bit) != 0);
        peers &= digit & bit ? set : ~set;
    }
    return valid ? peers : 0;
}

GS_KERNEL(gs_typed_place, gs_typed_args)
{
    GS_SHARED(shared);
    gs_u32 *const base = (gs_u32 *)(void *)shared; /* [GS_SORT_DIGITS], one a lane */
    gs_u32 *const next = base + (1 + gs_lane() / 32) * GS_SORT_DIGITS;
    const gs_u32 stretch = gs_block_x() * (GS_BLOCK_LANES / 32) + gs_lane() / 32, lane = gs_lane() % 32;
    const gs_u32 before = gs_before(base, a.total[gs_lane()]);
    gs_block_sync();
    base[gs_lane()] = before;
    gs_block_sync();
    for (gs_u32 d = lane; d < GS_SORT_DIGITS && stretch < a.stretches; d += 32)
        next[d] = base[d] + a.count[d * a.stretches + stretch];
    gs_group_sync(32);
    for (gs_u32 k = stretch * GS_SORT_EDGES; k < (stretch + 1) * GS_SORT_EDGES && k < a.edges; k += 32) {
        const int valid = k + lane < a.edges;
        const gs_u32 edge = valid ? gs_sorted_edge(&a, k + lane) : 0, digit = valid ? gs_digit(&a, edge) : 0;
        const gs_u32 peers = gs_peers(digit, valid), rank = gs_ones(peers & ((1u << lane) - 1));
        const gs_u32 at = next[digit] + rank;
        gs_group_sync(32);
        if (valid && rank == 0)
            next[digit] += gs_ones(peers);
        gs_group_sync(32);
        if (!valid)
            continue;
        a.to[at] = edge;
        if (a.to == a.order)
            a.place[edge] = at;
    }
}

/* Where each type's edges begin: the first edge of a type says it for those before, too, that have none. */
GS_KERNEL(gs_typed_begins, gs_typed_args)
{
    const gs_u32 i = gs_block_x() * GS_BLOCK_LANES + gs_lane();
    if (i > a.edges)
        return;
    const gs_u32 first = i == 0 ? 0 : gs_type_of(&a, a.order[i - 1]) + 1;
    const gs_u32 last = i == a.edges ? a.types : gs_type_of(&a, a.order[i]);
    for (gs_u32 t = first; t <= last && t <= a.types; t++)
        a.begin[t] = i;
}

GS_DEVICE gs_u32 gs_parts_of(const gs_typed_args *a, gs_u32 type, gs_u32 rows)
{
    return (a->begin[type + 1] - a->begin[type] + rows - 1) / rows;
}
GS_DEVICE gs_u32 gs_slots_of(gs_u32 pieces) { return pieces > 1 ? pieces : 0; }

/* One block: tasks, pieces and slots before each type, and of all. */
GS_KERNEL(gs_typed_tasks, gs_typed_args)
{
    GS_SHARED(shared);
    gs_u32 *const all = (gs_u32 *)(void *)shared;
    const gs_u32 from = gs_share(a.types, gs_lane()), to = gs_share(a.types, gs_lane() + 1);
    gs_u32 tasks = 0, pieces = 0, slots = 0;
    for (gs_u32 t = from; t < to; t++) {
        const gs_u32 n = gs_parts_of(&a, t, GS_PIECE_ROWS);
        tasks += gs_parts_of(&a, t, GS_TASK_ROWS);
        pieces += n;
        slots += gs_slots_of(n);
    }
    tasks = gs_before(all, tasks);
    pieces = gs_before(all, pieces);
    slots = gs_before(all, slots);
    for (gs_u32 t = from; t <= to; t++) {
        if (t == to && to != a.types)
            break; /* the next lane's */
        a.task[t] = tasks;
        a.piece[t] = pieces;
        a.slot[t] = slots;
        if (t == to)
            break;
        const gs_u32 n = gs_parts_of(&a, t, GS_PIECE_ROWS);
        tasks += gs_parts_of(&a, t, GS_TASK_ROWS);
        pieces += n;
        slots += gs_slots_of(n);
    }
}

/* ---- rows ---- */

/* The type that has part `n`, of those `before` each type; n is below before[types]. */
GS_DEVICE gs_u32 gs_type_with(const gs_u32 *before, gs_u32 types, gs_u32 n)
{
    gs_u32 low = 0, high = types;
    while (high - low > 1) { /* before[low] <= n < before[high] */
        const gs_u32 mid = low + (high - low) / 2;
        if (before[mid] <= n)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Number of the row of the edge at this place. */
GS_DEVICE gs_u32 gs_row_at(const gs_typed_args *a, const gs_typed_rows *r, gs_u32 place)
{
    return r->gathered ? gs_number(a->index, a->index_bytes, a->first_edge + a->order[place]) : place;
}

/* v[0..4) = columns [c, c + 4) of a row of `width`, 0 behind its end. */
GS_DEVICE void gs_load_some(float v[4], const float *row, gs_u32 c, const gs_u32 width)
{
    if (width % 4 == 0 && c < width) {
        gs_load4(v, row + c);
        return;
    }
    for (gs_u32 j = 0; j < 4; j++)
        v[j] = c + j < width ? row[c + j] : 0.0f;
}

GS_DEVICE void gs_store_some(float *row, const float v[4], gs_u32 c, const gs_u32 width)
{
    if (width % 4 == 0 && c < width) {
        gs_store4(row + c, v);
        return;
    }
    for (gs_u32 j = 0; j < 4 && c + j < width; j++)
        row[c + j] = v[j];
}

/* ---- products ---- */

/* x[k][row] = column first + k of the task's rows, 0 where there are none. */
GS_DEVICE void gs_load_task(float *x, const gs_typed_args *a, const gs_u32 *number, gs_u32 rows, gs_u32 first,
                            const gs_u32 in)
{
    GS_UNROLL for (gs_u32 i = 0; i < GS_TASK_ROWS * GS_STEP / 4 / GS_BLOCK_LANES; i++) {
        const gs_u32 e = i * GS_BLOCK_LANES + gs_lane(), row = e / (GS_STEP / 4), k = e % (GS_STEP / 4) * 4;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (row < rows)
            gs_load_some(v, a->x.row + (gs_u64)number[row] * in, first + k, in);
        for (gs_u32 j = 0; j < 4; j++)
            x[(k + j) * GS_TASK_STRIDE + row] = v[j];
    }
}

/* w[k][c] = row first + k, column `column` + c of the matrix [in, out], or of the transpose of one of [out, in]; it has
 * rows of `stride`. */
GS_DEVICE void gs_load_matrix(float *w, const float *matrix, gs_u32 stride, gs_u32 first, gs_u32 column,
                              const gs_u32 in, const gs_u32 out, const gs_u32 columns, const int transposed)
{
    for (gs_u32 e = gs_lane(); e < GS_STEP * columns; e += GS_BLOCK_LANES) {
        const gs_u32 k = transposed ? e % GS_STEP : e / columns, c = transposed ? e / GS_STEP : e % columns;
        const gs_u64 at = transposed ? (gs_u64)(column + c) * stride + first + k
                                     : (gs_u64)(first + k) * stride + column + c;
        w[k * GS_WIDE_STRIDE(columns) + c] = first + k < in && column + c < out ? matrix[at] : 0.0f;
    }
}

/* v[0..n) = x[0..n), at a multiple of n: as few accesses as n allows. */
GS_DEVICE void gs_load_rows(float *v, const float *x, const gs_u32 n)
{
    if (n % 4 == 0) {
        GS_UNROLL for (gs_u32 r = 0; r < n; r += 4)
            gs_load4(v + r, x + r);
    } else if (n == 2) {
        gs_load2(v, x);
    } else {
        v[0] = x[0];
    }
}

/* What a block that multiplies has to do. */
typedef struct gs_task {
    gs_u32 type, first, rows, column; /* rows: 0 where there is nothing to do */
} gs_task;

/* Its shared memory: of rows [GS_STEP, GS_TASK_STRIDE], of the matrix [GS_STEP, GS_WIDE_STRIDE(columns)], and
 * [GS_TASK_ROWS] where rows are read. Each pointer is made where it is used: of one that went through a struct
 * the compiler does not know which memory it is of. */
GS_DEVICE float *gs_task_matrix(float *shared) { return shared + GS_STEP * GS_TASK_STRIDE; }
GS_DEVICE gs_u32 *gs_task_numbers(float *shared, const gs_u32 columns)
{
    return (gs_u32 *)(void *)(gs_task_matrix(shared) + GS_STEP * GS_WIDE_STRIDE(columns));
}

GS_DEVICE gs_task gs_begin_task(const gs_typed_args *a, float *shared, const gs_u32 columns)
{
    gs_task k = {0, 0, 0, gs_block_y() * columns};
    const gs_u32 task = gs_block_x();
    if (task >= a->task[a->types])
        return k;
    k.type = gs_type_with(a->task, a->types, task);
    k.first = a->begin[k.type] + (task - a->task[k.type]) * GS_TASK_ROWS;
    const gs_u32 left = a->begin[k.type + 1] - k.first;
    k.rows = left < GS_TASK_ROWS ? left : GS_TASK_ROWS;
    if (gs_lane() < GS_TASK_ROWS)
        gs_task_numbers(shared, columns)[gs_lane()] =
            gs_lane() < k.rows ? gs_row_at(a, &a->x, k.first + gs_lane()) : 0;
    return k;
}

/* The next columns of the rows, and the next rows of the matrix. */
GS_DEVICE void gs_load_step(const gs_task *k, float *shared, const gs_typed_args *a, gs_u32 first, const gs_u32 in,
                            const gs_u32 out, const gs_u32 columns, const int transposed)
{
    gs_block_sync();
    gs_load_task(shared, a, gs_task_numbers(shared, columns), k->rows, first, in);
    gs_load_matrix(gs_task_matrix(shared), a->matrix + (gs_u64)k->type * a->each, a->stride, first, k->column, in, out,
                   columns, transposed);
    gs_block_sync();
}

/* The rows of a task by its type's matrix. `across` lanes have 4 columns each, and each lane as many rows as are left
 * to it. */
GS_DEVICE void gs_typed_product(const gs_typed_args *a, const gs_u32 in, const gs_u32 out, const gs_u32 across,
                                const int transposed)
{
    GS_SHARED(shared);
    const gs_u32 columns = 4 * across, each = GS_TASK_ROWS * across / GS_BLOCK_LANES;
    const gs_u32 own = gs_lane() / across * each, c = gs_lane() % across * 4;
    const gs_task t = gs_begin_task(a, shared, columns);
    float sum[GS_LANE_ROWS][4] = {{0.0f}};
    if (t.rows == 0)
        return;
    for (gs_u32 k0 = 0; k0 < in; k0 += GS_STEP) {
        gs_load_step(&t, shared, a, k0, in, out, columns, transposed);
        GS_UNROLL for (gs_u32 k = 0; k < GS_STEP; k++) {
            float m[4], v[GS_LANE_ROWS];
            gs_load4(m, gs_task_matrix(shared) + k * GS_WIDE_STRIDE(columns) + c);
            gs_load_rows(v, shared + k * GS_TASK_STRIDE + own, each);
            GS_UNROLL for (gs_u32 r = 0; r < each; r++)
                GS_UNROLL for (gs_u32 j = 0; j < 4; j++)
                    sum[r][j] += v[r] * m[j];
        }
    }
    GS_UNROLL for (gs_u32 r = 0; r < each; r++)
        if (own + r < t.rows)
            gs_store_some(a->made + (gs_u64)(t.first + own + r) * out, sum[r], t.column + c, out);
}

/* The same on tensor cores, of numbers rounded to tf32: a warp has 16 rows, and all columns of the block. */
GS_DEVICE void gs_typed_product_tf32(const gs_typed_args *a, const gs_u32 in, const gs_u32 out, const gs_u32 across,
                                     const int transposed)
{
    GS_SHARED(shared);
    const gs_u32 columns = 4 * across, row = gs_lane() / 32 * 16 + gs_lane() % 32 / 4, q = gs_lane() % 4;
    const gs_task t = gs_begin_task(a, shared, columns);
    float sum[8][4] = {{0.0f}};
    if (t.rows == 0)
        return;
    for (gs_u32 k0 = 0; k0 < in; k0 += GS_STEP) {
        gs_load_step(&t, shared, a, k0, in, out, columns, transposed);
        GS_UNROLL for (gs_u32 k = 0; k < GS_STEP; k += 8) {
            const float *const x = shared + (k + q) * GS_TASK_STRIDE + row;
            const float *const w = gs_task_matrix(shared) + (k + q) * GS_WIDE_STRIDE(columns);
            const float u[4] = {x[0], x[8], x[4 * GS_TASK_STRIDE], x[4 * GS_TASK_STRIDE + 8]};
            GS_UNROLL for (gs_u32 n = 0; n < columns / 8; n++) {
                const gs_u32 c = 8 * n + gs_lane() % 32 / 4;
                const float m[2] = {w[c], w[4 * GS_WIDE_STRIDE(columns) + c]};
                gs_warp_multiply(sum[n], u, m);
            }
        }
    }
    for (gs_u32 half = 0; half < 2; half++) {
        float *const to = a->made + (gs_u64)(t.first + row + 8 * half) * out;
        GS_UNROLL for (gs_u32 n = 0; n < columns / 8; n++)
            for (gs_u32 j = 0; j < 2 && row + 8 * half < t.rows; j++)
                if (t.column + 8 * n + 2 * q + j < out)
                    to[t.column + 8 * n + 2 * q + j] = sum[n][2 * half + j];
    }
}

/* ---- gradients of the matrices ---- */

/* to[r][c] = column `column` + c of row number[r], 0 where there is none. */
GS_DEVICE void gs_load_piece(float *to, const float *from, const gs_u32 *number, gs_u32 rows, gs_u32 column,
                             const gs_u32 width, const gs_u32 columns, const gs_u32 step)
{
    for (gs_u32 e = gs_lane(); e < step * columns / 4; e += GS_BLOCK_LANES) {
        const gs_u32 r = e / (columns / 4), c = e % (columns / 4) * 4;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (r < rows)
            gs_load_some(v, from + (gs_u64)number[r] * width, column + c, width);
        gs_store4(to + r * columns + c, v);
    }
}

/* What a block that adds up a piece has to do, and its shared memory. */
typedef struct gs_piece {
    gs_u32 type, number, first, rows, top, column; /* number: of the piece, of its type's; rows: 0: nothing to do */
    float *x, *y;                 /* [step, tall], [step, wide] */
    gs_u32 *x_number, *y_number;  /* [step] where rows are read */
} gs_piece;

GS_DEVICE gs_piece gs_begin_piece(const gs_typed_args *a, float *shared, const gs_u32 out, const gs_u32 tall,
                                  const gs_u32 wide, const gs_u32 step)
{
    const gs_u32 blocks = (out + wide - 1) / wide, piece = gs_block_x();
    gs_piece k = {0, 0, 0, 0, gs_block_y() / blocks * tall, gs_block_y() % blocks * wide, shared, shared + step * tall,
                  0, 0};
    if (piece >= a->piece[a->types])
        return k;
    k.type = gs_type_with(a->piece, a->types, piece);
    k.number = piece - a->piece[k.type];
    k.first = a->begin[k.type] + k.number * GS_PIECE_ROWS;
    const gs_u32 left = a->begin[k.type + 1] - k.first;
    k.rows = left < GS_PIECE_ROWS ? left : GS_PIECE_ROWS;
    k.x_number = (gs_u32 *)(void *)(k.y + step * wide);
    k.y_number = k.x_number + step;
    return k;
}

/* The next rows of the piece, from r0 on. */
GS_DEVICE void gs_load_pieces(const gs_piece *k, const gs_typed_args *a, gs_u32 r0, const gs_u32 in, const gs_u32 out,
                              const gs_u32 tall, const gs_u32 wide, const gs_u32 step)
{
    gs_block_sync();
    if (gs_lane() < step && r0 + gs_lane() < k->rows) {
        k->x_number[gs_lane()] = gs_row_at(a, &a->x, k->first + r0 + gs_lane());
        k->y_number[gs_lane()] = gs_row_at(a, &a->y, k->first + r0 + gs_lane());
    }
    gs_block_sync();
    gs_load_piece(k->x, a->x.row, k->x_number, k->rows - r0, k->top, in, tall, step);
    gs_load_piece(k->y, a->y.row, k->y_number, k->rows - r0, k->column, out, wide, step);
    gs_block_sync();
}

/* shared: [groups][tall, wide] sums, which are added up in the order of the groups. */
GS_DEVICE void gs_end_piece(const gs_piece *k, const gs_typed_args *a, const float *shared, const gs_u32 in,
                            const gs_u32 out, const gs_u32 tall, const gs_u32 wide, const gs_u32 groups)
{
    const gs_u32 pieces = a->piece[k->type + 1] - a->piece[k->type];
    float *const to = pieces > 1 ? a->partial + (gs_u64)(a->slot[k->type] + k->number) * in * out
                                 : a->grad + (gs_u64)k->type * a->each;
    const gs_u32 stride = pieces > 1 ? out : a->stride;
    gs_block_sync();
    for (gs_u32 e = gs_lane(); e < tall * wide; e += GS_BLOCK_LANES) {
        const gs_u32 row = k->top + e / wide, col = k->column + e % wide;
        float sum = 0.0f;
        if (row >= in || col >= out)
            continue;
        for (gs_u32 g = 0; g < groups; g++)
            sum += shared[g * tall * wide + e];
        to[(gs_u64)row * stride + col] = pieces > 1 ? sum : to[(gs_u64)row * stride + col] + sum;
    }
}

/* Of a piece's rows x [., in] and y [., out]: the sum of x' y, of 4 * down by 4 * across numbers of it. Lanes beyond
 * those take other rows of the piece. */
GS_DEVICE void gs_typed_outer(const gs_typed_args *a, const gs_u32 in, const gs_u32 out, const gs_u32 down,
                              const gs_u32 across)
{
    GS_SHARED(shared);
    const gs_u32 tall = 4 * down, wide = 4 * across, groups = GS_BLOCK_LANES / (down * across);
    const gs_u32 step = groups > GS_STEP ? groups : GS_STEP;
    const gs_u32 within = gs_lane() % (down * across), group = gs_lane() / (down * across);
    const gs_u32 i = within / across * 4, c = within % across * 4;
    const gs_piece k = gs_begin_piece(a, shared, out, tall, wide, step);
    float sum[4][4] = {{0.0f}};
    if (k.rows == 0)
        return;
    for (gs_u32 r0 = 0; r0 < k.rows; r0 += step) {
        gs_load_pieces(&k, a, r0, in, out, tall, wide, step);
        for (gs_u32 r = group; r < step; r += groups) {
            float u[4], v[4];
            gs_load4(u, k.x + r * tall + i);
            gs_load4(v, k.y + r * wide + c);
            GS_UNROLL for (gs_u32 p = 0; p < 4; p++)
                GS_UNROLL for (gs_u32 q = 0; q < 4; q++)
                    sum[p][q] += u[p] * v[q];
        }
    }
    gs_block_sync();
    for (gs_u32 p = 0; p < 4; p++)
        gs_store4(shared + group * tall * wide + (i + p) * wide + c, sum[p]);
    gs_end_piece(&k, a, shared, in, out, tall, wide, groups);
}

/* The same on tensor cores: a warp has 16 of the `tall` rows of the result and all its columns; warps beyond those take
 * other rows of the piece, 8 at a time. */
GS_DEVICE void gs_typed_outer_tf32(const gs_typed_args *a, const gs_u32 in, const gs_u32 out, const gs_u32 down,
                                   const gs_u32 across)
{
    GS_SHARED(shared);
    const gs_u32 tall = 4 * down, wide = 4 * across, groups = GS_BLOCK_LANES / 32 / (tall / 16);
    const gs_u32 step = 8 * groups > GS_STEP ? 8 * groups : GS_STEP;
    const gs_u32 warp = gs_lane() / 32, group = warp / (tall / 16), row = warp % (tall / 16) * 16;
    const gs_u32 g = gs_lane() % 32 / 4, q = gs_lane() % 4;
    const gs_piece k = gs_begin_piece(a, shared, out, tall, wide, step);
    float sum[8][4] = {{0.0f}};
    if (k.rows == 0)
        return;
    for (gs_u32 r0 = 0; r0 < k.rows; r0 += step) {
        gs_load_pieces(&k, a, r0, in, out, tall, wide, step);
        for (gs_u32 r = 8 * group; r < step; r += 8 * groups) {
            const float *const x = k.x + (r + q) * tall + row + g, *const y = k.y + (r + q) * wide + g;
            const float u[4] = {x[0], x[8], x[4 * tall], x[4 * tall + 8]};
            GS_UNROLL for (gs_u32 n = 0; n < wide / 8; n++) {
                const float v[2] = {y[8 * n], y[4 * wide + 8 * n]};
                gs_warp_multiply(sum[n], u, v);
            }
        }
    }
    gs_block_sync();
    float *const to = shared + group * tall * wide + (row + g) * wide + 2 * q;
    GS_UNROLL for (gs_u32 n = 0; n < wide / 8; n++) {
        to[8 * n] = sum[n][0];
        to[8 * n + 1] = sum[n][1];
        to[8 * wide + 8 * n] = sum[n][2];
        to[8 * wide + 8 * n + 1] = sum[n][3];
    }
    gs_end_piece(&k, a, shared, in, out, tall, wide, groups);
}

/* The pieces of a type that has several, in their order, to its gradient: the block of the first does it. */
GS_KERNEL(gs_typed_merge, gs_typed_args)
{
    const gs_u32 slot = gs_block_x(), e = gs_block_y() * GS_BLOCK_LANES + gs_lane();
    if (slot >= a.slot[a.types] || e >= a.numbers)
        return;
    const gs_u32 type = gs_type_with(a.slot, a.types, slot);
    if (slot != a.slot[type])
        return;
    float sum = 0.0f;
    for (gs_u32 s = slot; s < a.slot[type + 1]; s++)
        sum += a.partial[(gs_u64)s * a.numbers + e];
    a.grad[(gs_u64)type * a.each + (gs_u64)(e / a.out) * a.stride + e % a.out] += sum;
}
