/* sequence.cu - LSTMs over the edges of targets, forward and backward.
 *
 * A block takes a tile: some targets, those with the most edges first, so that those which still have an edge at step s
 * are its first ones. State, cell and gates of the tile lie in shared memory; a lane computes a column of the gates for
 * all targets of the tile, so a number of the weight is read once for them. Backward, a launch takes one window of 16
 * steps of every tile, from the last to the first: states are computed again from those at the window's start, and
 * these from the states at the starts of blocks of windows, of blocks of those, and so on, as on the CPU
 * device (device/cpu/sequence.c); what a tile keeps grows with the logarithm of its steps. Gradients of the edges of a
 * window go to memory, from where gs_scatter_gates adds them to the operands' rows in one order.
 *
 * Included in programs that need it; W and R (width, targets of a tile) are constants where these functions are used.
 */

#define GS_SEQUENCE_LANES GS_BLOCK_LANES

/* A tile while a block works on it. */
typedef struct gs_tile {
    gs_u32 first, rows, steps;  /* in a->order; targets; edges of the first one */
    float *state, *cell, *gate; /* [R, W], [R, W], [R, 4 W], shared */
    gs_u32 *row;                /* [R] operand rows of the step */
} gs_tile;

GS_DEVICE gs_u32 gs_degree(const gs_sequence_args *a, gs_u32 at)
{
    const gs_u32 t = a->order[at];
    return a->start[t + 1] - a->start[t];
}

/* ---- which operand a step has ---- */

/* First of the ascending numbers [from, to) that is at least `v`, or `to`. */
GS_DEVICE gs_u32 gs_first_from(const void *p, gs_u32 bytes, gs_u32 from, gs_u32 to, gs_u64 v)
{
    while (from < to) {
        const gs_u32 mid = from + (to - from) / 2;
        if (gs_number(p, bytes, mid) < v)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Edges of target t, sorted by type and then by operand, whose operand is below `v`. */
GS_DEVICE gs_u32 gs_count_below(const gs_sequence_args *a, gs_u32 t, gs_u64 v)
{
    gs_u32 count = 0, to;
    for (gs_u32 from = a->start[t]; from < a->start[t + 1]; from = to) {
        to = gs_first_from(a->type, a->type_bytes, from, a->start[t + 1],
                           (gs_u64)gs_number(a->type, a->type_bytes, from) + 1);
        count += gs_first_from(a->index, a->index_bytes, from, to, v) - from;
    }
    return count;
}

/* Operand row of a target's edge at this step of its sequence, which goes by operand. */
GS_DEVICE gs_u32 gs_operand_at(const gs_sequence_args *a, gs_u32 t, gs_u32 step)
{
    gs_u64 low = 0, high = 0xffffffffu;
    if (a->type == 0)
        return gs_number(a->index, a->index_bytes, a->start[t] + step);
    while (low < high) { /* the least v with more than `step` edges below v + 1 */
        const gs_u64 mid = low + (high - low) / 2;
        if (gs_count_below(a, t, mid + 1) > step)
            high = mid;
        else
            low = mid + 1;
    }
    return (gs_u32)low;
}

/* ---- steps ---- */

GS_DEVICE gs_tile gs_open_tile(const gs_sequence_args *a, float *shared, gs_u32 W, gs_u32 R)
{
    gs_tile t;
    t.first = a->first + gs_block_x() * R;
    t.rows = a->targets - t.first < R ? a->targets - t.first : R;
    t.steps = gs_degree(a, t.first);
    t.state = shared;
    t.cell = shared + R * W;
    t.gate = shared + 2 * R * W;
    t.row = (gs_u32 *)(void *)(shared + 6 * R * W);
    return t;
}

/* Rows of an array of the launch to the tile; those that the tile has not are 0. */
GS_DEVICE void gs_gather_tile(const gs_sequence_args *a, const gs_tile *t, float *to, const float *from, gs_u32 W,
                              gs_u32 R)
{
    for (gs_u32 i = gs_lane(); i < R * W; i += GS_SEQUENCE_LANES) {
        const gs_u32 r = i / W;
        to[i] =
            r < t->rows ? from[(gs_u64)gs_number(a->target, a->index_bytes, a->order[t->first + r]) * W + i % W] : 0.0f;
    }
    gs_block_sync();
}

GS_DEVICE void gs_scatter_tile(const gs_sequence_args *a, const gs_tile *t, float *to, const float *from, gs_u32 W)
{
    for (gs_u32 i = gs_lane(); i < t->rows * W; i += GS_SEQUENCE_LANES)
        to[(gs_u64)gs_number(a->target, a->index_bytes, a->order[t->first + i / W]) * W + i % W] = from[i];
}

/* Targets of the tile that have an edge at this step. */
GS_DEVICE gs_u32 gs_active(const gs_sequence_args *a, const gs_tile *t, gs_u32 step)
{
    gs_u32 n = t->rows;
    while (n > 0 && gs_degree(a, t->first + n - 1) <= step)
        n--;
    return n;
}

/* gate = what the edges bring + state @ weight', for all rows of the tile: those that have no edge do no harm. */
GS_DEVICE void gs_gate_sums(const gs_sequence_args *a, const gs_tile *t, gs_u32 step, gs_u32 active, const gs_u32 W,
                            const gs_u32 R)
{
    if (gs_lane() < active)
        t->row[gs_lane()] = gs_operand_at(a, a->order[t->first + gs_lane()], step);
    gs_block_sync();
    for (gs_u32 j = gs_lane(); j < 4 * W; j += GS_SEQUENCE_LANES) {
        float sum[GS_TILE_ROWS];
        GS_UNROLL for (gs_u32 r = 0; r < R; r++)
            sum[r] = r < active ? a->gates[(gs_u64)t->row[r] * 4 * W + j] : 0.0f;
        for (gs_u32 k = 0; k < W; k++) {
            const float w = a->transposed[(gs_u64)k * 4 * W + j];
            GS_UNROLL for (gs_u32 r = 0; r < R; r++)
                sum[r] += t->state[r * W + k] * w;
        }
        GS_UNROLL for (gs_u32 r = 0; r < R; r++)
            t->gate[r * 4 * W + j] = sum[r];
    }
    gs_block_sync();
}

/* One step of the first `active` rows. `gates`, `cells` (or 0): the activated gates and the cells are kept there. */
GS_DEVICE void gs_step_tile(const gs_tile *t, gs_u32 active, float *gates, float *cells, gs_u32 W)
{
    for (gs_u32 i = gs_lane(); i < active * W; i += GS_SEQUENCE_LANES) {
        const gs_u32 at = i / W * 4 * W + i % W;
        const float in = gs_sigmoid(t->gate[at]), keep = gs_sigmoid(t->gate[at + W]);
        const float value = tanhf(t->gate[at + 2 * W]), out = gs_sigmoid(t->gate[at + 3 * W]);
        const float cell = keep * t->cell[i] + in * value;
        t->cell[i] = cell;
        t->state[i] = out * tanhf(cell);
        if (gates != 0) {
            gates[at] = in;
            gates[at + W] = keep;
            gates[at + 2 * W] = value;
            gates[at + 3 * W] = out;
            cells[i] = cell;
        }
    }
    gs_block_sync();
}

/* Steps [from, to) of the state and cell that are there. */
GS_DEVICE void gs_advance(const gs_sequence_args *a, const gs_tile *t, gs_u64 from, gs_u64 to, const gs_u32 W,
                          const gs_u32 R)
{
    for (gs_u64 s = from; s < to && s < t->steps; s++) {
        const gs_u32 active = gs_active(a, t, (gs_u32)s);
        gs_gate_sums(a, t, (gs_u32)s, active, W, R);
        gs_step_tile(t, active, 0, 0, W);
    }
}

GS_DEVICE void gs_sequence_forward(const gs_sequence_args *a, const gs_u32 W, const gs_u32 R)
{
    GS_SHARED(shared);
    const gs_tile t = gs_open_tile(a, shared, W, R);
    gs_gather_tile(a, &t, t.state, a->state, W, R);
    gs_gather_tile(a, &t, t.cell, a->cell, W, R);
    gs_advance(a, &t, 0, t.steps, W, R);
    gs_scatter_tile(a, &t, a->state, t.state, W);
    gs_scatter_tile(a, &t, a->cell, t.cell, W);
}

/* ---- where a window starts ---- */

/* State and cell of a part of the block that is kept at `level` (1 is the windows'). */
GS_DEVICE float *gs_kept(const gs_sequence_args *a, gs_u32 level, gs_u32 part, gs_u32 W, gs_u32 R)
{
    return a->kept + (((gs_u64)gs_block_x() * a->levels + level - 1) * GS_SEQUENCE_BRANCH + part) * 2 * R * W;
}

/* State and cell lie side by side, here and there. */
GS_DEVICE void gs_copy_states(float *to, const float *from, gs_u32 W, gs_u32 R)
{
    for (gs_u32 i = gs_lane(); i < 2 * R * W; i += GS_SEQUENCE_LANES)
        to[i] = from[i];
    gs_block_sync();
}

/* Keeps the states at the starts of the parts of a block, each of `part` steps. */
GS_DEVICE void gs_load_block(const gs_sequence_args *a, const gs_tile *t, gs_u32 level, gs_u32 levels, gs_u64 block,
                             gs_u64 part, const gs_u32 W, const gs_u32 R)
{
    if (level == levels) { /* one block covers all steps */
        gs_gather_tile(a, t, t->state, a->state, W, R);
        gs_gather_tile(a, t, t->cell, a->cell, W, R);
    } else {
        gs_copy_states(t->state, gs_kept(a, level + 1, (gs_u32)(block % GS_SEQUENCE_BRANCH), W, R), W, R);
    }
    gs_copy_states(gs_kept(a, level, 0, W, R), t->state, W, R);
    for (gs_u32 p = 1; p < GS_SEQUENCE_BRANCH; p++) {
        const gs_u64 start = (block * GS_SEQUENCE_BRANCH + p) * part;
        if (start >= t->steps)
            break;
        gs_advance(a, t, start - part, start, W, R);
        gs_copy_states(gs_kept(a, level, p, W, R), t->state, W, R);
    }
}

/* State and cell before window `window`. Windows come from the last to the first, so a block is new with its last
 * one. */
GS_DEVICE void gs_load_start(const gs_sequence_args *a, const gs_tile *t, gs_u64 window, const gs_u32 W, const gs_u32 R)
{
    gs_u32 levels = 0;
    gs_u64 parts = 1; /* windows of a block's part */
    for (gs_u64 reach = GS_SEQUENCE_WINDOW; reach < t->steps; reach *= GS_SEQUENCE_BRANCH) {
        parts *= levels > 0 ? GS_SEQUENCE_BRANCH : 1;
        levels++;
    }
    if (levels == 0) {
        gs_gather_tile(a, t, t->state, a->state, W, R);
        gs_gather_tile(a, t, t->cell, a->cell, W, R);
        return;
    }
    for (gs_u32 level = levels; level > 0; level--, parts /= GS_SEQUENCE_BRANCH)
        if (a->round == 0 || (window + 1) % (parts * GS_SEQUENCE_BRANCH) == 0)
            gs_load_block(a, t, level, levels, window / (parts * GS_SEQUENCE_BRANCH), parts * GS_SEQUENCE_WINDOW, W, R);
    gs_copy_states(t->state, gs_kept(a, 1, (gs_u32)(window % GS_SEQUENCE_BRANCH), W, R), W, R);
}

/* ---- a window, backward ---- */

/* Runs the window's steps and keeps all; rows without an edge at a step get gates and states of 0, and no operand. */
GS_DEVICE void gs_forward_window(const gs_sequence_args *a, const gs_tile *t, gs_u64 from, const gs_u32 W,
                                 const gs_u32 R)
{
    const gs_u64 edges = (gs_u64)gs_block_x() * GS_SEQUENCE_WINDOW * R;
    float *const cells = a->cells + (gs_u64)gs_block_x() * (GS_SEQUENCE_WINDOW + 1) * R * W;
    for (gs_u32 i = gs_lane(); i < R * W; i += GS_SEQUENCE_LANES)
        cells[i] = t->cell[i];
    for (gs_u32 s = 0; s < GS_SEQUENCE_WINDOW; s++) {
        const gs_u64 edge = edges + s * R;
        const gs_u32 active = from + s < t->steps ? gs_active(a, t, (gs_u32)(from + s)) : 0;
        for (gs_u32 i = gs_lane(); i < R * W; i += GS_SEQUENCE_LANES)
            a->before[edge * W + i] = i / W < active ? t->state[i] : 0.0f;
        for (gs_u32 i = active * 4 * W + gs_lane(); i < R * 4 * W; i += GS_SEQUENCE_LANES)
            a->gate[edge * 4 * W + i] = 0.0f;
        if (active > 0)
            gs_gate_sums(a, t, (gs_u32)(from + s), active, W, R);
        if (gs_lane() < R)
            a->row[edge + gs_lane()] = gs_lane() < active ? t->row[gs_lane()] : GS_NO_SLOT;
        if (active > 0)
            gs_step_tile(t, active, a->gate + edge * 4 * W, cells + (s + 1) * R * W, W);
    }
}

/* Gates become their gradients, there and in the tile; cell is the gradient of the cell, state that of the state. */
GS_DEVICE void gs_step_back(const gs_tile *t, gs_u32 active, float *gates, const float *cells, gs_u32 W, gs_u32 R)
{
    for (gs_u32 i = gs_lane(); i < active * W; i += GS_SEQUENCE_LANES) {
        const gs_u32 at = i / W * 4 * W + i % W;
        const float in = gates[at], keep = gates[at + W], value = gates[at + 2 * W], out = gates[at + 3 * W];
        const float shape = tanhf(cells[R * W + i]), d_state = t->state[i];
        const float d_cell = t->cell[i] + d_state * out * (1.0f - shape * shape);
        t->gate[at] = d_cell * value * in * (1.0f - in);
        t->gate[at + W] = d_cell * cells[i] * keep * (1.0f - keep);
        t->gate[at + 2 * W] = d_cell * in * (1.0f - value * value);
        t->gate[at + 3 * W] = d_state * shape * out * (1.0f - out);
        for (gs_u32 q = 0; q < 4; q++)
            gates[at + q * W] = t->gate[at + q * W];
        t->cell[i] = d_cell * keep;
    }
    gs_block_sync();
}

/* state = gate @ weight, of the first `active` rows. G lanes share a column, each with every G-th row. */
GS_DEVICE void gs_state_gradient(const gs_sequence_args *a, const gs_tile *t, gs_u32 active, const gs_u32 W,
                                 const gs_u32 R, const gs_u32 G)
{
    for (gs_u32 u = gs_lane(); u < W * G; u += GS_SEQUENCE_LANES) {
        const gs_u32 k = u % W, g = u / W;
        float sum[GS_TILE_ROWS];
        GS_UNROLL for (gs_u32 q = 0; q < R / G; q++)
            sum[q] = 0;
        for (gs_u32 j = 0; j < 4 * W; j++) {
            const float w = a->weight[(gs_u64)j * W + k];
            GS_UNROLL for (gs_u32 q = 0; q < R / G; q++)
                sum[q] += t->gate[(g + q * G) * 4 * W + j] * w;
        }
        GS_UNROLL for (gs_u32 q = 0; q < R / G; q++)
            if (g + q * G < active)
                t->state[(g + q * G) * W + k] = sum[q];
    }
    gs_block_sync();
}

GS_DEVICE void gs_sequence_window(const gs_sequence_args *a, const gs_u32 W, const gs_u32 R, const gs_u32 G)
{
    GS_SHARED(shared);
    const gs_tile t = gs_open_tile(a, shared, W, R);
    const gs_u64 window = (t.steps + GS_SEQUENCE_WINDOW - 1) / GS_SEQUENCE_WINDOW - 1 - a->round,
                 from = window * GS_SEQUENCE_WINDOW;
    const gs_u64 edges = (gs_u64)gs_block_x() * GS_SEQUENCE_WINDOW * R;
    const float *const cells = a->cells + (gs_u64)gs_block_x() * (GS_SEQUENCE_WINDOW + 1) * R * W;

    gs_load_start(a, &t, window, W, R);
    gs_forward_window(a, &t, from, W, R);
    gs_gather_tile(a, &t, t.state, a->d_state, W, R);
    gs_gather_tile(a, &t, t.cell, a->d_cell, W, R);
    for (gs_u32 i = gs_lane(); i < R * 4 * W; i += GS_SEQUENCE_LANES)
        t.gate[i] = 0.0f;
    gs_block_sync();
    for (gs_u32 s = GS_SEQUENCE_WINDOW; s-- > 0;) {
        const gs_u32 active = from + s < t.steps ? gs_active(a, &t, (gs_u32)(from + s)) : 0;
        if (active == 0)
            continue;
        gs_step_back(&t, active, a->gate + (edges + s * R) * 4 * W, cells + s * R * W, W, R);
        gs_state_gradient(a, &t, active, W, R, G);
    }
    gs_scatter_tile(a, &t, a->d_state, t.state, W);
    gs_scatter_tile(a, &t, a->d_cell, t.cell, W);
}

/* ---- what every width shares ---- */

/* transposed[k, j] = weight[j, k], so that lanes with neighbouring j read neighbours. */
GS_KERNEL(gs_transpose_weight, gs_sequence_args)
{
    const gs_u64 i = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane(), wide = 4 * (gs_u64)a.width;
    if (i < wide * a.width)
        a.transposed[i] = a.weight[i % wide * a.width + i / wide];
}

/* d_gates[row of edge] += gate of edge. A block has the rows whose number leaves its own over, so each is one block's,
 * a column one lane's, and edges are added in their order. */
GS_KERNEL(gs_scatter_gates, gs_sequence_args)
{
    GS_SHARED(shared);
    gs_u32 *const row = (gs_u32 *)(void *)shared, *const some = row + GS_BLOCK_LANES;
    const gs_u32 wide = 4 * a.width;
    for (gs_u32 first = 0; first < a.edges; first += GS_BLOCK_LANES) {
        const gs_u32 e = first + gs_lane(), mine = e < a.edges ? a.row[e] : GS_NO_SLOT;
        row[gs_lane()] = mine != GS_NO_SLOT && mine % gs_blocks_x() == gs_block_x() ? mine : GS_NO_SLOT;
        gs_block_sync();
        if (gs_lane() % 32 == 0) { /* most of the others' are skipped 32 at a time */
            gs_u32 any = 0;
            for (gs_u32 i = 0; i < 32; i++)
                any |= row[gs_lane() + i] != GS_NO_SLOT;
            some[gs_lane() / 32] = any;
        }
        gs_block_sync();
        for (gs_u32 i = 0; i < GS_BLOCK_LANES; i++) {
            if (i % 32 == 0 && !some[i / 32])
                i += 31;
            else if (row[i] != GS_NO_SLOT)
                for (gs_u32 c = gs_lane(); c < wide; c += GS_BLOCK_LANES)
                    a.d_gates[(gs_u64)row[i] * wide + c] += a.gate[(gs_u64)(first + i) * wide + c];
        }
        gs_block_sync();
    }
}
