/* layout.h - what does a row, a tile and an interval of everything weigh? Units: bytes and rows. */
#ifndef GS_SCHEDULE_LAYOUT_H
#define GS_SCHEDULE_LAYOUT_H

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/schedule.h"

/* Vertex arrays of at most this many bytes a row are staged an interval at a
 * time, not a tile: a tile of them would be a small, expensive read. */
#define GS_SHORT_ROW_BYTES 16u
/* Tiles are multiples of this many rows, so that a tile of any array that a run writes (rows are whole words of
 * 4 bytes) starts at a multiple of GS_BLOCK_BYTES within its interval. */
#define GS_TILE_ROWS 1024u
/* A byte written wears the disk, so it counts this share of its time once more, also where
 * that time is hidden behind other work. */
#define GS_WEAR_SHARE 0.25

typedef struct gs_stage_layout {
    uint32_t tile_rows;
    uint64_t scratch_bytes;   /* registers of a tile that live in the arena */
    uint64_t *reg_offset;     /* [regs] in scratch, UINT64_MAX where not there */
    uint64_t gathered_bytes;  /* of rows at the operand end that an edge takes */
} gs_stage_layout;

/* How many rows a launch of a vertex program has. */
typedef enum gs_tiles {
    GS_TILES_SHORT,    /* what they load and store is staged, and stays in a cache */
    GS_TILES_LONG,     /* staged too, for devices whose launches take long to ask for */
    GS_TILES_IN_PLACE, /* nothing is staged */
} gs_tiles;

/* The first to be tried. Rows that come to devices with memory of their own are staged there, wherever they are on the
 * host. */
gs_tiles gs_layout_tiles(const gs_topology *t);

/* What is said of memories in one place (layout.c). */
typedef struct gs_layout_memories {
    uint32_t devices;         /* that compute */
    uint32_t own;             /* of those, which have an arena of their own: all, or none */
    uint32_t arenas;          /* of such memories, parts of the host's */
    uint32_t on_hosts;        /* devices whose memory is one, that of one alone too */
    bool on_host[GS_PLAN_DEVICES];
    bool apart;               /* of ranks: each has a host of its own, so arenas and on_hosts are one */
    bool in_place[GS_PLAN_DEVICES]; /* it computes on what is in the host's memory, in which its arena has sums alone */
    bool any_in_place;
    bool groups_chunks;       /* chunks of several operand intervals may come by one read */
} gs_layout_memories;

/* Bytes of a host with one more arena: where each has its own, those of the one that has most. */
static inline uint64_t gs_layout_add_arena(const gs_layout_memories *m, uint64_t bytes, uint64_t arena)
{
    return m->apart ? GS_MAX(bytes, arena) : bytes + arena;
}

typedef struct gs_layout {
    const gs_schedule_config *config;
    gs_layout_memories memory;
    bool long_tiles;
    bool staged;              /* tiles are short, as what they load and store goes through the ring */
    const gs_program *program;
    const gs_chunk_table *chunks;
    uint32_t parts;
    uint32_t sets;
    gs_edge_set set[GS_EDGE_SETS];
    uint32_t *stage_set;      /* [stages] the edges that a stage's sums go over */
    uint32_t *span;           /* [stages] from an interval's first row to the last that the stage runs for, at most */
    uint64_t *row_bytes;      /* [arrays] */
    uint32_t *stored_by;      /* [arrays] the stage whose vertex program stores it; GS_NONE: of the store, or of an edge
                               * pass */
    uint64_t *spill_interval; /* [arrays] bytes of an interval in a spill file; 0: a store array */
    gs_stage_layout *stage;   /* [stages] */
    gs_array_use *use;        /* what stages use, stage by stage, as gs_stage_next_use() says: planning asks often */
    uint32_t *first_use;      /* [stages + 1] */
    bool *sparse;             /* [arrays] the run makes less than half of its rows */
    uint64_t set_bytes[GS_EDGE_SETS]; /* of a set's edge file; 0 where another set has the same one */
    uint64_t chunk_bytes;     /* of all sets' chunks */
    uint64_t *filled[GS_EDGE_SETS]; /* [parts * filled_words] a set's chunks that have edges: for an operand interval, a
                                     * bit a target, as chunks of one operand stand far apart in the table */
    uint64_t *named[GS_EDGE_SETS];  /* the same for a target interval, a bit an operand */
    uint32_t filled_words;
    uint64_t least_tables;    /* bytes that the tables of any plan have at least, */
    uint64_t bare_tables[2];  /* and those of one that keeps nothing, without and with a read for each chunk */
    gs_arena arrays;
} gs_layout;

/* Uses that the stage makes of arrays: from here to those of the next stage. */
static inline const gs_array_use *gs_layout_uses(const gs_layout *l, uint32_t stage)
{
    return &l->use[l->first_use[stage]];
}

/* Bytes of the host's memory that any plan takes, for its tables and with what is fixed. */
static inline uint64_t gs_layout_least_host(const gs_layout *l)
{
    return l->config->host_fixed + l->least_tables + l->least_tables / 8;
}

/* The stage that makes an array, in its vertex program or its edge pass; GS_NONE: the store has it. */
uint32_t gs_layout_made_by(const gs_layout *l, uint32_t array);
/* How often an epoch runs a pass: "setup" and "predict" happen once a run. */
double gs_pass_weight(const gs_layout *l, uint32_t pass);

/* Is the stage's edge pass the derivative of a sequence? Its memory is states, not sums. */
static inline bool gs_stage_is_back(const gs_stage *s)
{
    return s->sums == 1 && s->sum[0].kind == GS_SUM_LSTM_BACK;
}

/* Columns of a part of a sum's memory; 0 where the sum has no such part. An LSTM's cell stands where an
 * attention's maximum does. */
static inline uint32_t gs_sum_width(const gs_stage *s, uint32_t sum, int part)
{
    const gs_sum *m = &s->sum[sum];
    if (m->kind == GS_SUM_LSTM_BACK)
        return 0;
    if (part == GS_SUM_ACC || (m->kind == GS_SUM_LSTM && part == GS_SUM_MAXIMUM))
        return s->reg[m->reg].width;
    return m->kind == GS_SUM_ATTEND ? s->reg[m->lse].width : 0;
}

static inline const gs_chunk *gs_layout_chunk(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t operand)
{
    return &l->set[l->stage_set[stage]].chunk[(uint64_t)target * l->parts + operand];
}

/* The first of the stage's target intervals [target, end) that has edges from the operand interval; `end`: none has. */
static inline uint32_t gs_layout_next_target(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t end,
                                             uint32_t operand)
{
    const uint64_t *const bits = l->filled[l->stage_set[stage]] + (uint64_t)operand * l->filled_words;
    return (uint32_t)gs_next_bit(bits, target, end, true);
}

/* The first operand interval from `operand` on from which the target interval has edges; `parts`: none. */
static inline uint32_t gs_layout_next_operand(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t operand)
{
    const uint64_t *const bits = l->named[l->stage_set[stage]] + (uint64_t)target * l->filled_words;
    return (uint32_t)gs_next_bit(bits, operand, l->parts, true);
}

/* Rows from the interval's first to the last that the stage runs for; 0: it runs for none. */
uint32_t gs_layout_rows(const gs_layout *l, uint32_t stage, uint32_t interval);
/* True where the stage does not run for all rows. */
bool gs_layout_prunes(const gs_layout *l, uint32_t stage);
/* Runs of rows of an interval that the stage runs for. */
uint32_t gs_layout_runs(const gs_layout *l, uint32_t stage, uint32_t interval);
gs_row_run gs_layout_run(const gs_layout *l, uint32_t stage, uint32_t interval, uint32_t k);
/* True where any of the rows is read and not 0. */
bool gs_layout_holds(const gs_layout *l, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows);
/* The next run, from number *k (at first 0) on, of rows that the stage runs for and the array holds: where it is 0
 * adding it to a sum changes nothing. False: there is none. */
bool gs_layout_own_run(const gs_layout *l, uint32_t stage, uint32_t array, uint32_t interval, uint32_t *k,
                       gs_row_run *out);
gs_status gs_layout_make(gs_layout *out, const gs_schedule_config *config, gs_tiles tiles);
void gs_layout_drop(gs_layout *l);

/* The derivative of a sequence goes over the chunks of a column from the last to the first and needs the states at the
 * start of each. They are kept at the start of every group of `group` chunks, and inside one group at a time. */
static inline uint32_t gs_state_slots(uint32_t parts, uint32_t group)
{
    return (uint32_t)gs_div_up(parts, group) + group - 1;
}

/* State and cell of one target interval. */
static inline uint64_t gs_state_bytes(const gs_layout *l, const gs_stage *s)
{
    return gs_align_up(8ull * l->program->param[s->sum[0].weight].cols * l->chunks->interval_rows, 64);
}

#endif /* GS_SCHEDULE_LAYOUT_H */
