/* compile_emit.c - a cut graph to arrays, parameters and stages of a program. */
#include <string.h>

#include "base/size.h"
#include "compile/compile_internal.h"

/* ---- tables ------------------------------------------------------------ */

/* Learned tables of a program, and the arrays of their gradients. */

/* The table of this name, or GS_NONE. */
static uint32_t find_table(const gs_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->tables; i++)
        if (strcmp(p->table[i].name, name) == 0)
            return i;
    return GS_NONE;
}

/* The array of the table `n`, which is added where no pass before had it. */
static gs_status take_table(gs_program *p, uint32_t *array, const gs_node *n)
{
    const uint32_t old = find_table(p, gs_node_table(n));
    gs_array a = {.dtype = GS_F32, .width = n->width, .store_id = -1, .lasting = true};
    gs_table t = {.width = n->width, .blocks = gs_node_table_blocks(n), .initial = n->initial, .gradient = GS_NONE,
                  .state = {GS_NONE, GS_NONE}, .best = GS_NONE};
    gs_table *tables;

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
    GS_TRY(gs_program_add_array(p, &t.array, &a));
    *array = t.array;
    p->table[p->tables++] = t;
    return GS_OK;
}

/* The array for value v where it is the gradient of tables, which are there; else *array is GS_NONE. */
static gs_status table_gradient(gs_program *p, uint32_t *array, const gs_ir *ir, uint32_t v)
{
    gs_array a = {.dtype = GS_F32, .width = gs_ir_node(ir, v)->width, .store_id = -1, .result = true};

    *array = GS_NONE;
    for (uint32_t o = 0; o < gs_ir_outputs(ir); o++) {
        const gs_output *const out = gs_ir_output(ir, o);
        if (out->kind != GS_OUTPUT_GRAD_ROWS || out->node != v)
            continue;
        const uint32_t t = find_table(p, gs_node_table(gs_ir_node(ir, out->param)));
        snprintf(a.name, sizeof(a.name), "d.%.60s", p->table[t].name);
        if (*array == GS_NONE) /* of several tables whose gradients are the same there is one */
            GS_TRY(gs_program_add_array(p, array, &a));
        p->table[t].gradient = *array;
    }
    return GS_OK;
}

/* ---- sums over edges --------------------------------------------------- */

/* The edge pass of a stage: its sums and the edge program they share.
 *
 * By in-edges the target end is the destination and the edge_operand end the source; by out-edges
 * it is the other way round. Values are written once, however many sums use them.
 */

/* A register of the stage; its array has room for it. */
static uint32_t add_reg(gs_stage *s, gs_reg_kind kind, const gs_node *n, uint32_t array)
{
    s->reg[s->regs] = (gs_reg){.kind = kind, .dtype = kind == GS_REG_SUM ? GS_F32 : n->dtype, .width = n->width,
                               .array = array};
    return s->regs++;
}

static const gs_node *at(const gs_emitter *e, uint32_t i)
{
    return gs_ir_node(e->c->ir, i);
}

/* A sum of its own in stage t: not an LSE_IN that its ATTEND gives. */
static bool in_stage(const gs_emitter *e, uint32_t v, uint32_t t)
{
    return gs_compile__is_sum(at(e, v)) && e->state[v] == GS_CUT_COMPUTED && e->c->when.level[v] == t &&
           e->c->sum.partner[v] == GS_IR_NONE;
}

static uint32_t add_edge_reg(gs_stage *s, gs_edge_reg_kind kind, uint32_t width, uint32_t array)
{
    s->edge_reg[s->edge_regs] = (gs_edge_reg){.kind = kind, .width = width, .array = array};
    return s->edge_regs++;
}

static gs_operand edge_operand(const gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    if (n->op == GS_OP_PARAM || gs_compile__is_statistic(n))
        return (gs_operand){.kind = GS_FROM_PARAM, .index = e->param[v]};
    if (n->op == GS_OP_CONST)
        return (gs_operand){.kind = GS_FROM_CONST, .value = n->alpha};
    if (n->op == GS_OP_SRC)
        return (gs_operand){.kind = GS_FROM_REG, .index = e->edge[n->in[0]]};
    return (gs_operand){.kind = GS_FROM_REG, .index = n->type == GS_TYPE_D ? e->edge_destination[v] : e->edge[v]};
}

/* The row of one end, of its columns those of the edge's type. */
static void emit_pick(gs_emitter *e, gs_stage *s, gs_edge_reg_kind end, uint32_t v)
{
    e->edge[v] = add_edge_reg(s, end, at(e, v)->width, e->array[at(e, v)->in[0]]);
    s->edge_reg[e->edge[v]].typed = true;
}

/* An edge's features, or some columns of them. */
static void emit_features(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *const n = at(e, v);
    const bool part = n->op == GS_OP_PART;

    e->edge[v] = add_edge_reg(s, GS_EDGE_FEATURES, n->width, GS_NONE);
    s->edge_reg[e->edge[v]].first = part ? n->site : 0;
    s->edge_reg[e->edge[v]].columns = part ? at(e, n->in[0])->width : n->width;
}

/* Widest first where the order does not matter. */
static void emit_edge_instr(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    const uint32_t inputs = gs_node_inputs(n);
    const bool commutes = gs_op_is(n->op, GS_FACT_COMMUTES);
    const uint32_t first =
        inputs == 2 && commutes &&
                (at(e, n->in[0])->type == GS_TYPE_P ||
                 (at(e, n->in[1])->type != GS_TYPE_P && at(e, n->in[1])->width > at(e, n->in[0])->width))
            ? 1
            : 0;
    gs_instr i = {.op = n->op, .alpha = n->alpha, .site = n->site, .self = n->self};

    i.a = edge_operand(e, n->in[first]);
    if (inputs > 1)
        i.b = edge_operand(e, n->in[1 - first]);
    if (inputs > 2)
        i.c = edge_operand(e, n->in[2]);
    i.dst = e->edge[v] = add_edge_reg(s, GS_EDGE_TEMP, n->width, GS_NONE);
    s->edge_instr[s->edge_instrs++] = i;
}

/* Registers and instructions for everything in the cones, in the order of the graph. */
static void emit_program(gs_emitter *e, gs_stage *s)
{
    const gs_edge_reg_kind source = s->direction == 0 ? GS_EDGE_OPERAND : GS_EDGE_TARGET;
    const gs_edge_reg_kind destination = s->direction == 0 ? GS_EDGE_TARGET : GS_EDGE_OPERAND;

    gs_compile__sort_marks(&e->marks);
    for (uint32_t i = 0; i < e->marks.count; i++) {
        const uint32_t v = e->marks.node[i];
        e->edge[v] = e->edge_destination[v] = GS_NONE; /* not those of another stage */
        if ((e->marks.bits[v] & GS_CONE_SOURCE) != 0)
            e->edge[v] = add_edge_reg(s, source, at(e, v)->width, e->array[v]);
        if ((e->marks.bits[v] & GS_CONE_DESTINATION) != 0)
            e->edge_destination[v] = add_edge_reg(s, destination, at(e, v)->width, e->array[v]);
        if ((e->marks.bits[v] & GS_CONE_EDGE) == 0)
            continue;
        if (at(e, v)->op == GS_OP_WEIGHT)
            e->edge[v] = add_edge_reg(s, GS_EDGE_WEIGHT, 1, GS_NONE);
        else if (at(e, v)->op == GS_OP_EDGE_FEATURES || at(e, v)->op == GS_OP_PART)
            emit_features(e, s, v);
        else if (gs_compile__is_typed(at(e, v)))
            emit_pick(e, s, at(e, v)->op == GS_OP_TYPE_SRC ? source : destination, v);
        else
            emit_edge_instr(e, s, v);
    }
}

static gs_sum_kind kind_of(const gs_emitter *e, uint32_t v)
{
    static const gs_sum_kind kind[GS_OP_COUNT] = {
        [GS_OP_SPLIT_OUT] = GS_SUM_ADD_TYPE,      [GS_OP_MAX_IN] = GS_SUM_MAX,
        [GS_OP_MIN_IN] = GS_SUM_MIN,              [GS_OP_MAX_HELD_IN] = GS_SUM_MAX_HELD,
        [GS_OP_MIN_HELD_IN] = GS_SUM_MIN_HELD,    [GS_OP_ATTEND] = GS_SUM_ATTEND,
        [GS_OP_LSE_IN] = GS_SUM_ATTEND,           [GS_OP_LSTM_IN] = GS_SUM_LSTM,
        [GS_OP_LSTM_BACK] = GS_SUM_LSTM_BACK,     [GS_OP_TYPE_OUTER] = GS_SUM_OUTER,
        [GS_OP_DENSE_OUTER] = GS_SUM_OUTER,       /* others: GS_SUM_ADD */
    };
    return kind[at(e, v)->op];
}

/* The log-sum-exp that comes with an attention: of the LSE_IN that asks for it, if one does. */
static uint32_t emit_lse(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const uint32_t r = add_reg(s, GS_REG_SUM, at(e, at(e, v)->in[0]), GS_NONE);
    for (uint32_t i = 0; i < e->c->sum.lses; i++)
        if (e->c->sum.partner[e->c->sum.lse[i]] == v)
            e->reg[e->c->sum.lse[i]] = r;
    return r;
}

/* The derivative of a sequence, with the gradient of its weight where that is asked for. */
static void emit_back(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_sum m = {.kind = GS_SUM_LSTM_BACK, .array = e->array[v], .reg = GS_NONE, .lse = GS_NONE,
                .weight = e->param[n->in[1]], .value = edge_operand(e, n->in[0]).index,
                .score = edge_operand(e, n->in[2]).index};

    for (uint32_t o = 0; o < gs_ir_outputs(e->c->ir); o++) {
        const gs_output *out = gs_ir_output(e->c->ir, o);
        m.learned |=
            out->kind == GS_OUTPUT_GRAD && at(e, out->node)->op == GS_OP_LSTM_WEIGHT && at(e, out->node)->in[0] == v;
    }
    s->sum[s->sums++] = m;
}

static void emit_row_sum(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const uint32_t row = e->c->sum.operand[v], scale = e->c->sum.scale[v];
    const gs_row_sum rows = {.array = e->array[row],
                             .scale = scale != GS_IR_NONE ? e->array[scale] : GS_NONE,
                             .types = at(e, v)->op == GS_OP_SPLIT_IN   ? GS_TYPES_OF_SUM
                                      : at(e, v)->op == GS_OP_PICK_OUT ? GS_TYPES_OF_ROWS
                                                                       : GS_TYPES_NONE};
    gs_stage_add_row_sum(s, &rows, GS_MIN(at(e, v)->width, at(e, row)->width), e->reg[v], at(e, v)->self);
}

static void emit_sum(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_sum m = {.array = GS_NONE, .kind = kind_of(e, v), .self = n->self, .value = GS_NONE, .score = GS_NONE,
                .lse = GS_NONE};

    if (n->op == GS_OP_LSTM_BACK) {
        emit_back(e, s, v);
        return;
    }
    m.reg = add_reg(s, GS_REG_SUM, n, GS_NONE);
    e->reg[v] = m.reg;
    if (e->c->sum.operand[v] != GS_IR_NONE) {
        emit_row_sum(e, s, v);
        return;
    }
    if (m.kind == GS_SUM_ATTEND) {
        m.beside = m.self;
        m.self = false;
    }
    if (n->op == GS_OP_LSE_IN) { /* attention of the scores to themselves, for its lse */
        m.value = m.score = edge_operand(e, n->in[0]).index;
        m.lse = e->reg[v] = add_reg(s, GS_REG_SUM, n, GS_NONE);
    } else if (n->op == GS_OP_ATTEND) {
        m.score = edge_operand(e, n->in[0]).index;
        m.value = edge_operand(e, n->in[1]).index;
        m.lse = emit_lse(e, s, v);
    } else if (m.kind == GS_SUM_OUTER) {
        m.score = edge_operand(e, n->in[0]).index;
        m.value = edge_operand(e, n->in[1]).index;
        m.weight = e->param[n->in[2]];
        m.dense = n->op == GS_OP_DENSE_OUTER;
        m.site = n->site;
    } else {
        m.value = edge_operand(e, n->in[0]).index;
        if (gs_sum_is_held(m.kind))
            m.score = edge_operand(e, n->in[1]).index;
        m.weight = n->op == GS_OP_LSTM_IN ? e->param[n->in[1]] : 0;
    }
    s->sum[s->sums++] = m;
}

/* The sums of stage `t`, and their edge program. */
static gs_status emit_edges(gs_emitter *e, gs_stage *s, uint32_t t)
{
    const gs_cut *c = e->c;
    bool program = false;

    s->direction = c->sum.direction[t];
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++)
        if (in_stage(e, c->when.by_level[i], t) && c->sum.operand[c->when.by_level[i]] == GS_IR_NONE) {
            gs_compile__cone(c->ir, c->when.by_level[i], &e->marks);
            program = true;
        }
    const size_t regs = GS_STAGE_SUMS * GS_ROW_SUM_REGS + 2 * (size_t)e->marks.count;
    s->edge_reg = gs_calloc(regs, sizeof(*s->edge_reg));
    s->edge_instr = gs_calloc(GS_STAGE_SUMS + (size_t)e->marks.count, sizeof(*s->edge_instr));
    if (s->edge_reg == NULL || s->edge_instr == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the compiled program");
    if (program)
        emit_program(e, s);
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++)
        if (in_stage(e, c->when.by_level[i], t))
            emit_sum(e, s, c->when.by_level[i]);
    gs_compile__unmark(&e->marks);
    return GS_OK;
}

/* ---- stages ------------------------------------------------------------ */

static gs_status no_memory(void)
{
    return gs_fail(GS_ENOMEM, "no memory for the compiled program");
}

/* Room for one more element; arrays of a program grow one at a time, there are few. */
static gs_status grow(void **array, uint32_t count, size_t size)
{
    void *q = gs_realloc(*array, ((size_t)count + 1) * size);
    if (q == NULL)
        return no_memory();
    *array = q;
    memset((char *)q + (size_t)count * size, 0, size);
    return GS_OK;
}

static uint32_t find_array(const gs_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->arrays; i++)
        if (strcmp(p->array[i].name, name) == 0)
            return i;
    return GS_NONE;
}

/* ---- leaves ---- */

static gs_status emit_input(gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    const gs_leaf *leaf = NULL;
    gs_array a = {.dtype = n->dtype, .width = n->width};

    if (strncmp(n->name, GS_HOISTED, strlen(GS_HOISTED)) == 0) {
        e->array[v] = find_array(e->p, n->name);
        return e->array[v] != GS_NONE ? GS_OK : gs_fail(GS_EINVAL, "compile: no pass has stored '%s'", n->name);
    }
    if (gs_node_table(n) != NULL)
        return take_table(e->p, &e->array[v], n);
    for (uint32_t i = 0; i < e->options->leaves; i++)
        if (strcmp(e->options->leaf[i].name, n->name) == 0)
            leaf = &e->options->leaf[i];
    if (leaf == NULL)
        return gs_fail(GS_ENOTFOUND, "the model needs the vertex array '%s', which the store does not have", n->name);
    if (leaf->dtype != n->dtype || leaf->width != n->width)
        return gs_fail(GS_EINVAL, "the model needs '%s' as %s[%u], the store has %s[%u]", n->name,
                       gs_dtype_name(n->dtype), n->width, gs_dtype_name(leaf->dtype), leaf->width);
    a.store_id = leaf->store_id;
    a.lasting = leaf->store_id < 0;
    e->array[v] = find_array(e->p, n->name);
    if (e->array[v] == GS_NONE) {
        snprintf(a.name, sizeof(a.name), "%s", n->name);
        return gs_program_add_array(e->p, &e->array[v], &a);
    }
    if (e->p->array[e->array[v]].dtype != n->dtype || e->p->array[e->array[v]].width != n->width)
        return gs_fail(GS_EINVAL, "two passes read '%s' with different shapes", n->name);
    return GS_OK;
}

static gs_status add_param(gs_emitter *e, uint32_t v, const gs_param *q)
{
    void *array = e->p->param;

    GS_TRY(grow(&array, e->p->params, sizeof(*q)));
    e->p->param = array;
    e->p->param[e->p->params] = *q;
    e->param[v] = e->p->params++;
    return GS_OK;
}

static gs_status emit_param(gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_param q = {.dims = n->dims, .rows = n->rows, .cols = n->width, .initial = n->initial,
                  .fixed = n->fixed, .counter = n->counter, .shape_dims = n->shape_dims,
                  .running = GS_NONE};

    for (uint32_t i = 0; i < e->p->params; i++) {
        const gs_param *old = &e->p->param[i];
        if (strcmp(old->name, n->name) != 0)
            continue;
        if (old->dims != q.dims || old->rows != q.rows || old->cols != q.cols)
            return gs_fail(GS_EINVAL, "two passes have '%s' in different shapes", n->name);
        e->param[v] = i;
        return GS_OK;
    }
    memcpy(q.shape, n->shape, sizeof(q.shape));
    if (n->picked != 0) { /* a row for each type of edges */
        q.shape_dims = n->picked;
        q.shape[1] = n->width;
    }
    snprintf(q.name, sizeof(q.name), "%s", n->name);
    return add_param(e, v, &q);
}

/* What a pass computes over all vertices: of its own, as arrays are. */
static gs_status emit_statistic_param(gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_param q = {.dims = 1, .rows = 1, .cols = n->width, .fixed = true, .initial = {GS_INITIAL_FILL, 0},
                  .running = GS_NONE,
                  .statistic = n->op == GS_OP_MEAN_ALL ? GS_STATISTIC_MEAN : GS_STATISTIC_VARIANCE};

    for (uint32_t o = 0; o < gs_ir_outputs(e->c->ir); o++) {
        const gs_output *out = gs_ir_output(e->c->ir, o);
        if (out->kind == GS_OUTPUT_FOLLOW && out->node == v)
            q.running = e->param[out->param];
    }
    snprintf(q.name, sizeof(q.name), "%.15s.%s.%u", e->options->pass, gs_op_name(n->op), v);
    return add_param(e, v, &q);
}

/* A label for a stored value: its own, or what it was made of. */
static void describe(const gs_emitter *e, uint32_t v, char out[GS_IR_NAME_BYTES + 16])
{
    const gs_node *n = at(e, v);
    const char *of = "", *how = gs_op_name(n->op);

    if (e->options->store_logits && v == gs_ir_root(e->c->ir)) {
        of = "logits";
        how = "";
    } else if (n->name[0] != 0) {
        of = n->name;
        how = "";
    } else if (gs_op_classof(n->op) == GS_CLASS_MATMUL) {
        of = at(e, n->in[1])->name;
        how = "product";
    } else {
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            if (at(e, n->in[k])->width == n->width && at(e, n->in[k])->name[0] != 0)
                of = at(e, n->in[k])->name;
    }
    snprintf(out, GS_IR_NAME_BYTES + 16, "%.40s%s%s", of, of[0] != 0 && how[0] != 0 ? "." : "", how);
}

/* Arrays of this label already there, with a number behind it or without. */
static uint32_t same_label(const gs_program *p, const char *name)
{
    const size_t length = strnlen(name, 52);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->arrays; i++)
        count += strncmp(p->array[i].name, name, length) == 0 &&
                 (p->array[i].name[length] == 0 || p->array[i].name[length] == '#');
    return count;
}

/* "train.layer0.h"; a number behind it where two values have one label. */
static gs_status emit_stored(gs_emitter *e, uint32_t v)
{
    gs_array a = {.dtype = gs_compile__stored_type(e->c, v), .width = at(e, v)->width, .store_id = -1};
    char label[GS_IR_NAME_BYTES + 16];

    for (uint32_t o = 0; o < gs_ir_outputs(e->c->ir); o++)
        if (gs_ir_output(e->c->ir, o)->kind == GS_OUTPUT_STORE && gs_ir_output(e->c->ir, o)->node == v) {
            if (e->options->layer && gs_ir_differentiated(e->c->ir)) {
                snprintf(a.name, sizeof(a.name), "%s", GS_INPUT_GRAD);
                GS_TRY(gs_program_add_array(e->p, &e->array[v], &a));
                e->p->result[e->p->results++] = e->array[v];
                return GS_OK;
            }
            GS_TRY(gs_compile__hoisted_name(e->c->ir, v, a.name, sizeof(a.name)));
            return gs_program_add_array(e->p, &e->array[v], &a);
        }
    GS_TRY(table_gradient(e->p, &e->array[v], e->c->ir, v));
    if (e->array[v] != GS_NONE)
        return GS_OK;
    describe(e, v, label);
    snprintf(a.name, sizeof(a.name), "%.15s.%.44s", e->options->pass, label);
    for (uint32_t k = GS_MAX(2u, 1 + same_label(e->p, a.name)); find_array(e->p, a.name) != GS_NONE; k++) {
        char base[GS_NAME_BYTES];
        memcpy(base, a.name, sizeof(base));
        base[strcspn(base, "#")] = 0;
        snprintf(a.name, sizeof(a.name), "%.52s#%u", base, k);
    }
    return gs_program_add_array(e->p, &e->array[v], &a);
}

static gs_status emit_leaves(gs_emitter *e)
{
    for (uint32_t v = 0; v < e->c->nodes; v++) {
        e->array[v] = e->param[v] = GS_NONE;
        if (at(e, v)->op == GS_OP_INPUT)
            GS_TRY(emit_input(e, v));
        else if (at(e, v)->op == GS_OP_PARAM)
            GS_TRY(emit_param(e, v));
    }
    for (uint32_t v = 0; v < e->c->nodes; v++)
        if (e->c->keep.stored[v])
            GS_TRY(emit_stored(e, v));
        else if (gs_compile__is_statistic(at(e, v)))
            GS_TRY(emit_statistic_param(e, v));
    return GS_OK;
}

/* ---- one stage; its arrays have room for all registers and instructions ---- */

/* A register of the value's array, in that array's type. */
static uint32_t add_array_reg(gs_emitter *e, gs_stage *s, gs_reg_kind kind, uint32_t v)
{
    const uint32_t r = add_reg(s, kind, at(e, v), e->array[v]);
    s->reg[r].dtype = e->p->array[e->array[v]].dtype;
    return r;
}

static gs_operand operand(const gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    if (n->op == GS_OP_PARAM || gs_compile__is_statistic(n))
        return (gs_operand){.kind = GS_FROM_PARAM, .index = e->param[v]};
    if (n->op == GS_OP_CONST)
        return (gs_operand){.kind = GS_FROM_CONST, .value = n->alpha};
    return (gs_operand){.kind = GS_FROM_REG, .index = e->reg[v]};
}

/* Widest rows first where the order does not matter: kernels stream operand a. */
static bool swap_operands(const gs_emitter *e, const gs_node *n)
{
    const gs_node *a, *b;
    if (!gs_op_is(n->op, GS_FACT_COMMUTES))
        return false;
    a = at(e, n->in[0]);
    b = at(e, n->in[1]);
    if (a->type == GS_TYPE_P || b->type == GS_TYPE_P)
        return a->type == GS_TYPE_P && b->type != GS_TYPE_P;
    return b->width > a->width;
}

/* The register, whose array is of a narrower type, in that type and stored. */
static void emit_round(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_instr round = {.op = GS_OP_ROUND, .a = operand(e, v), .dst = add_array_reg(e, s, GS_REG_TEMP, v)};
    s->instr[s->instrs++] = round;
}

/* The same value, from `op` on. */
static void emit_again(gs_emitter *e, gs_stage *s, uint32_t v, gs_op op)
{
    const uint32_t dst = add_reg(s, GS_REG_TEMP, at(e, v), GS_NONE);
    s->instr[s->instrs++] = (gs_instr){.op = op, .a = operand(e, v), .dst = dst};
    e->reg[v] = dst;
}

/* What edges read is rounded for all: a derivative compares its own row with others, or subtracts a number twice. */
static void emit_nearest(gs_emitter *e, gs_stage *s, uint32_t v)
{
    if (e->c->keep.gathered[v])
        emit_again(e, s, v, GS_OP_NEAREST);
}

static bool is_rounded(const gs_emitter *e, uint32_t v)
{
    return at(e, v)->dtype == GS_F32 && e->p->array[e->array[v]].dtype != GS_F32;
}

/* A value that later stages do again is stored where it is computed first. */
static void emit_instr(gs_emitter *e, gs_stage *s, uint32_t v, uint32_t t)
{
    const gs_node *n = at(e, v);
    const uint32_t inputs = gs_node_inputs(n), first = swap_operands(e, n) ? 1 : 0;
    gs_instr i = {.op = n->op, .alpha = n->alpha, .site = n->site, .self = n->self, .dst = GS_NONE};

    i.a = operand(e, n->in[first]);
    if (inputs > 1)
        i.b = operand(e, n->in[1 - first]);
    if (inputs > 2)
        i.c = operand(e, n->in[2]);
    const bool becomes = e->c->keep.stored[v], rounded = becomes && is_rounded(e, v),
               stored = becomes && e->c->when.level[v] == t;
    if (gs_op_classof(n->op) != GS_CLASS_LOSS || gs_op_is_loss_grad(n->op))
        i.dst = e->reg[v] = add_reg(s, GS_REG_TEMP, n, stored && !rounded ? e->array[v] : GS_NONE);
    s->instr[s->instrs++] = i;
    if (rounded)
        emit_nearest(e, s, v);
    if (rounded && stored)
        emit_round(e, s, v);
}

/* A sum's register is not writable, so a sum that becomes an array is copied. */
static void store_sum(gs_emitter *e, gs_stage *s, uint32_t v)
{
    if (is_rounded(e, v)) {
        emit_nearest(e, s, v);
        emit_round(e, s, v);
        return;
    }
    const gs_instr copy = {.op = GS_OP_MUL, .a = operand(e, v), .b = {.kind = GS_FROM_CONST, .value = 1.0f},
                           .dst = add_reg(s, GS_REG_TEMP, at(e, v), e->array[v])};
    s->instr[s->instrs++] = copy;
}

/* Gradients may be placed in a later stage than their level, so they go by output. */
static void emit_gradients(gs_emitter *e, gs_stage *s, uint32_t t)
{
    for (uint32_t k = e->c->when.place_start[t]; k < e->c->when.place_start[t + 1]; k++) {
        const gs_output *out = gs_ir_output(e->c->ir, e->c->when.by_place[k]);
        const gs_node *n = at(e, out->node);
        gs_instr i = {.op = n->op, .dst = GS_NONE};
        if (out->kind != GS_OUTPUT_GRAD || n->op == GS_OP_LSTM_WEIGHT ||
            n->op == GS_OP_TYPE_WEIGHT)
            continue;
        i.dst = e->param[out->param];
        i.a = operand(e, n->in[0]);
        if (gs_op_is_outer(n->op))
            i.b = operand(e, n->in[1]);
        s->instr[s->instrs++] = i;
    }
}

/* "train 1: sum_in(train.layer0.y)" */
static void name_stage(const gs_emitter *e, gs_stage *s, uint32_t number)
{
    static const char *const what[] = {"sum",    "split", "max",       "min",  "max_held", "min_held",
                                       "attend", "lstm",  "lstm_back", "outer"};
    gs_row_sum rows = {.types = GS_TYPES_NONE};
    const char *of = "";

    if (s->sums == 0) {
        snprintf(s->name, sizeof(s->name), "%s %u", e->options->pass, number);
        return;
    }
    const uint32_t first = gs_sum_of_rows(&rows, s, 0) ? 0 : GS_NONE;
    for (gs_array_use u = {0}; of[0] == 0 && gs_stage_next_use(s, &u);)
        if (u.role == GS_USE_OPERAND && u.sum == first)
            of = e->p->array[u.array].name;
    snprintf(s->name, sizeof(s->name), "%.15s %u: %s_%s(%.30s)", e->options->pass, number, 
             rows.types == GS_TYPES_OF_ROWS ? "pick" : what[s->sum[0].kind], s->direction == 0 ? "in" : "out", of);
}

static void emit_load(gs_emitter *e, gs_stage *s, uint32_t v)
{
    e->reg[v] = add_array_reg(e, s, GS_REG_LOAD, v);
    if (is_rounded(e, v))
        emit_again(e, s, v, GS_OP_CAST);
}

/* The rows of the statistic's input go into it, here and nowhere else. */
static void emit_statistic(const gs_emitter *e, gs_stage *s, uint32_t v)
{
    s->instr[s->instrs++] = (gs_instr){.op = at(e, v)->op, .dst = e->param[v], .a = operand(e, at(e, v)->in[0])};
}

static void emit_values(gs_emitter *e, gs_stage *s, uint32_t t)
{
    for (uint32_t i = e->c->out.start[t]; i < e->c->out.end[t]; i++) {
        const uint32_t v = gs_cut_node(e->c->out.value[i]);
        const gs_node *n = at(e, v);
        const gs_cut_state state = gs_cut_state_of(e->c->out.value[i]);
        if (state == GS_CUT_LOADED)
            emit_load(e, s, v);
        else if (state == GS_CUT_COMPUTED && gs_compile__is_sum(n) && e->c->keep.stored[v] && n->op != GS_OP_LSTM_BACK)
            store_sum(e, s, v);
        else if (state == GS_CUT_COMPUTED && gs_compile__is_statistic(n))
            emit_statistic(e, s, v);
        else if (state == GS_CUT_COMPUTED && !gs_compile__is_sum(n) && gs_op_classof(n->op) != GS_CLASS_REDUCE)
            emit_instr(e, s, v, t);
    }
}

/* Tables were made for the most that a stage may have. One that cannot be made smaller stays as it is. */
static void fit(void **array, uint32_t count, size_t size)
{
    void *const p = gs_realloc(*array, GS_MAX(count, 1u) * size);
    if (p != NULL)
        *array = p;
}

static void fit_stage(gs_stage *s)
{
    fit((void **)&s->reg, s->regs, sizeof(*s->reg));
    fit((void **)&s->instr, s->instrs, sizeof(*s->instr));
    fit((void **)&s->edge_reg, s->edge_regs, sizeof(*s->edge_reg));
    fit((void **)&s->edge_instr, s->edge_instrs, sizeof(*s->edge_instr));
}

/* Notes what stage t computes and loads, or forgets it. */
static void enter_stage(gs_emitter *e, uint32_t t, bool enter)
{
    for (uint32_t i = e->c->out.start[t]; i < e->c->out.end[t]; i++) {
        const uint32_t v = gs_cut_node(e->c->out.value[i]);
        e->state[v] = enter ? (uint8_t)gs_cut_state_of(e->c->out.value[i]) : GS_CUT_UNUSED;
        e->reg[v] = GS_NONE;
    }
}

static gs_status emit_stage(gs_emitter *e, uint32_t t, uint32_t number)
{
    const size_t values = e->c->out.end[t] - e->c->out.start[t];
    const size_t outputs = e->c->when.place_start[t + 1] - e->c->when.place_start[t];
    void *stages = e->p->stage;
    gs_stage *s;
    gs_status st;

    GS_TRY(grow(&stages, e->p->stages, sizeof(gs_stage)));
    e->p->stage = stages;
    s = &e->p->stage[e->p->stages++]; /* freed with the program from here on */
    s->reg = gs_calloc(3 * values + 2 * GS_STAGE_SUMS, sizeof(*s->reg));
    s->instr = gs_calloc(3 * values + outputs + 1, sizeof(*s->instr));
    if (s->reg == NULL || s->instr == NULL)
        return no_memory();
    enter_stage(e, t, true);
    if ((st = emit_edges(e, s, t)) == GS_OK) {
        emit_values(e, s, t);
        emit_gradients(e, s, t);
        name_stage(e, s, number);
        fit_stage(s);
    }
    enter_stage(e, t, false);
    return st;
}

static bool stage_is_empty(const gs_cut *c, uint32_t t)
{
    for (uint32_t i = c->out.start[t]; i < c->out.end[t]; i++)
        if (gs_cut_state_of(c->out.value[i]) == GS_CUT_COMPUTED)
            return false;
    return true;
}

static gs_status emit_pass(gs_emitter *e)
{
    void *passes = e->p->pass;
    gs_pass q = {.first_stage = e->p->stages};

    GS_TRY(emit_leaves(e));
    for (uint32_t t = 1; t <= e->c->stages; t++)
        if (!stage_is_empty(e->c, t))
            GS_TRY(emit_stage(e, t, e->p->stages - q.first_stage));
    GS_TRY(grow(&passes, e->p->passes, sizeof(q)));
    e->p->pass = passes;
    snprintf(q.name, sizeof(q.name), "%s", e->options->pass);
    q.stages = e->p->stages - q.first_stage;
    e->p->pass[e->p->passes++] = q;
    if (e->options->store_logits)
        e->p->logits = e->array[gs_ir_root(e->c->ir)];
    if (e->options->store_logits && e->options->layer)
        e->p->result[e->p->results++] = e->p->logits;
    return gs_program_check(e->p);
}

void gs_compile__roll_back(gs_program *p, const gs_program *old)
{
    for (uint32_t s = old->stages; s < p->stages; s++) {
        gs_free(p->stage[s].reg);
        gs_free(p->stage[s].instr);
        gs_free(p->stage[s].edge_reg);
        gs_free(p->stage[s].edge_instr);
    }
    p->arrays = old->arrays;
    p->params = old->params;
    p->stages = old->stages;
    p->passes = old->passes;
    p->logits = old->logits;
    p->results = old->results;
    p->tables = old->tables;
}

gs_status gs_compile__emit(gs_program *p, const gs_cut *c, const gs_compile_options *options)
{
    const gs_program old = *p;
    gs_emitter e = {.p = p, .c = c, .options = options};
    GS_ENDS(gs_arena_free) gs_arena memory = {0};

    e.array = gs_arena_take(&memory, c->nodes, sizeof(*e.array));
    e.param = gs_arena_take(&memory, c->nodes, sizeof(*e.param));
    e.reg = gs_arena_take(&memory, c->nodes, sizeof(*e.reg));
    e.edge = gs_arena_take(&memory, c->nodes, sizeof(*e.edge));
    e.edge_destination = gs_arena_take(&memory, c->nodes, sizeof(*e.edge_destination));
    e.marks.bits = gs_arena_take(&memory, c->nodes, sizeof(*e.marks.bits));
    e.marks.node = gs_arena_take(&memory, c->nodes, sizeof(*e.marks.node));
    e.state = gs_arena_take(&memory, c->nodes, sizeof(*e.state));
    const gs_status st = memory.is_short ? no_memory() : emit_pass(&e);
    if (st != GS_OK)
        gs_compile__roll_back(p, &old);
    return st;
}
