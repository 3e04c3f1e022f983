/* run_ranks.c - a run of several ranks: what it can be, what they must have in common, how it ends together.
 *
 * Each rank goes through all of a run, with the same plan and parameters of the same bits. Rank 0 alone leaves files.
 */
#include <string.h>

#include "base/file.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "model/model.h"
#include "ranks/ranks.h"
#include "session/edges.h"
#include "session/session_plan.h"
#include "store/store_write.h" /* gs_store_is_at */
#include "train/options.h"
#include "train/run_internal.h"

/* Of what ranks compare, which has the same size whatever version each of them is of. */
#define OPTIONS_MOST 128u
#define ONE(...) +1u
_Static_assert(1u GS_TRAIN_OPTION_MAP(ONE) <= OPTIONS_MOST, "each option has a place, beside the version");
#undef ONE

gs_status gs_join_ranks(uint32_t *rank, uint32_t *ranks)
{
    GS_TRY(gs_check_argument(rank, "rank"));
    GS_TRY(gs_check_argument(ranks, "ranks"));
    const gs_status st = gs_ranks_open();
    *rank = gs_ranks_self();
    *ranks = gs_ranks_count();
    return st;
}

/* ---- the options ---------------------------------------------------------- */

static gs_status refuse(const char *what)
{
    return gs_fail(GS_EUNSUPPORTED, "%s: not on several ranks yet; start it without mpirun", what);
}

static gs_status check_kind(const gs_train_options *o, gs_run_kind kind)
{
    if (kind == GS_RUN_TRAIN && gs_train_on_batches(o) && o->host_memory == 0)
        return gs_fail(GS_EINVAL, ".host_memory: is missing; ranks that train on batches plan for the same");
    if (o->trace != NULL)
        return refuse(".trace");
    if (o->profile)
        return refuse(".profile");
    return gs_choice(o, disk_to_device) == 1 ? refuse(".disk_to_device yes") : GS_OK;
}

/* "cuda:A,B,..." has the GPUs of a machine, which its ranks have in turn; a rank names its own as often as there are
 * ranks. */
static void take_gpu(const char *list, char device[GS_DEVICE_WORDS])
{
    const uint32_t gpus = GS_MAX(gs_device_count(list), 1u);
    const char *number = list[4] == ':' ? list + 5 : "0";
    int at = snprintf(device, GS_DEVICE_WORDS, "cuda");

    for (uint32_t k = gs_ranks_place_on_host() % gpus; k > 0; k--)
        number = strchr(number, ',') + 1;
    const int digits = (int)GS_MIN(strcspn(number, ","), (size_t)4); /* no GPU has four */
    for (uint32_t r = 0; r < gs_ranks_count(); r++)
        at += snprintf(device + at, GS_DEVICE_WORDS - (size_t)at, "%c%.*s", r == 0 ? ':' : ',', digits, number);
}

/* A rank has one device, and the plan is of all: cpu:N, or as many GPUs. */
static gs_status take_device(gs_train_options *o, char device[GS_DEVICE_WORDS])
{
    const gs_device_words words = gs_device_words_of(o->device);

    if (words == GS_DEVICES_GPU || words == GS_DEVICES_GPUS) {
        take_gpu(o->device, device);
    } else {
        snprintf(device, GS_DEVICE_WORDS, "cpu:%u", gs_ranks_count());
        if (words != GS_DEVICES_CPU && strcmp(o->device, device) != 0)
            return gs_fail(GS_EUNSUPPORTED, ".device %s: a rank has one device, the processors of its machine or a "
                           "GPU; use cpu, or cuda:A,B,... with the GPUs of a machine", o->device);
    }
    o->device = device;
    return GS_OK;
}

/* Options that may differ: where files are that a machine has of its own, and how the run was begun. Results are rank
 * 0's alone. */
static bool is_own(const gs_option *x)
{
    static const size_t own[] = {
        offsetof(gs_train_options, topology), offsetof(gs_train_options, spill), offsetof(gs_train_options, checkpoint),
        offsetof(gs_train_options, resume),   offsetof(gs_train_options, edges), offsetof(gs_train_options, command),
        offsetof(gs_train_options, config)};

    for (size_t k = 0; k < GS_ARRAY_LEN(own); k++)
        if (own[k] == x->field)
            return true;
    return false;
}

static uint64_t id_of(const gs_option *x, const gs_train_options *o)
{
    if (gs_option_is_text(x)) {
        const char *const text = gs_option_text(x, o);
        return text == NULL ? 0 : gs_hash64(text, strlen(text) + 1);
    }
    const double number = gs_option_number(x, o);
    return gs_hash64(&number, sizeof(number));
}

/* Of .model, whose file each machine has: what stands in it. */
static gs_status model_id(uint64_t *out, const gs_train_options *o)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;

    GS_TRY(gs_session_open_model(&m, o));
    *out = gs_model_text_id(m);
    return GS_OK;
}

/* All have the same options and version. */
static gs_status compare(const gs_train_options *o)
{
    uint64_t own[OPTIONS_MOST], all[GS_RANKS_MOST][OPTIONS_MOST];
    const char *name[OPTIONS_MOST] = {NULL};
    uint32_t n = 0;

    memset(own, 0, sizeof(own));
    own[n++] = gs_hash64(gs_version(), strlen(gs_version()));
    for GS_OPTION_EACH (x)
        if (!is_own(x)) {
            name[n] = x->name;
            own[n] = id_of(x, o);
            if (x->field == offsetof(gs_train_options, model) && o->model != NULL)
                GS_TRY(model_id(&own[n], o));
            n++;
        }
    GS_TRY(gs_ranks_gather(all, own, sizeof(own)));
    for (uint32_t r = 1; r < gs_ranks_count(); r++)
        for (uint32_t k = 0; k < n; k++)
            if (all[r][k] != all[0][k] && name[k] == NULL)
                return gs_fail(GS_EINVAL, "rank %u runs another command or version of gnnstream than rank 0; give all "
                               "ranks the same", r);
            else if (all[r][k] != all[0][k])
                return gs_fail(GS_EINVAL, ".%s: rank %u has another than rank 0; give all ranks the same options",
                               name[k], r);
    return GS_OK;
}

/* ---- the folder ----------------------------------------------------------- */

/* "a,b,c": of rank 1 "b"; a list has so many. NULL: no memory. */
static char *place_in_list(const char *list, uint32_t rank)
{
    char *own;

    for (; rank > 0; rank--)
        list = strchr(list, ',') + 1;
    if ((own = gs_strdup(list)) != NULL)
        own[strcspn(own, ",")] = '\0';
    return own;
}

gs_status gs_run__folder(char **out, const char *store)
{
    const uint32_t self = gs_ranks_self(), ranks = gs_ranks_count();
    const bool list = strchr(store, ',') != NULL && gs_path_is_absent(store);
    GS_FREED char *dir = NULL;
    GS_FREED char *own = NULL;
    char name[16];
    uint32_t places = 1;

    for (const char *c = store; list && (c = strchr(c, ',')) != NULL; c++)
        places++;
    if (list && places != ranks)
        return gs_fail(GS_EINVAL, "%s: is a list of %u folders, one for each rank, and there %s %u", store, places,
                       ranks == 1 ? "is" : "are", ranks);
    dir = list ? place_in_list(store, self) : gs_strdup(store);
    snprintf(name, sizeof(name), "%u", self);
    GS_NEED(dir != NULL && (own = gs_path_join(dir, name)) != NULL, "%s: out of memory", store);
    const bool shards = !gs_store_is_at(dir) && gs_store_has_shard(dir, GS_SHARDS_MOST);
    if (shards && !gs_store_has_shard(dir, self))
        return gs_fail(GS_ENOTFOUND, "%s: there is no shard for rank %u", own, self);
    char **const taken = shards ? &own : &dir;
    *out = GS_HANDED_OVER(*taken);
    return GS_OK;
}

gs_status gs_run__same_of_ranks(uint64_t own, const char *otherwise)
{
    uint64_t all[GS_RANKS_MOST];

    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    for (uint32_t k = 1; k < gs_ranks_count(); k++)
        if (all[k] != all[0])
            return gs_ranks_agree(gs_fail(GS_EINVAL, "rank %u %s", k, otherwise));
    return GS_OK;
}

/* All ranks have a shard of one store, or none has, and deal alike. */
static gs_status compare_stores(const gs_store *s)
{
    const gs_store_shard *const x = gs_store_get_shard(s);
    const uint64_t id = gs_store_get_info(s)->id;

    return gs_run__same_of_ranks(
        x == NULL ? id : gs_hash64_seeded(x->first, (x->ranks + 1) * sizeof(*x->first), id),
        "has another store than rank 0, or a shard where that has a whole store; give all ranks one store, or the "
        "shards that were made of it together");
}

gs_status gs_run__take_folder(char **out, const char *store)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    if (gs_ranks_count() == 1)
        return (*out = gs_strdup(store)) != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", store);
    GS_TRY(gs_run__folder(out, store));
    GS_TRY(gs_session_open_store(&s, *out));
    return compare_stores(s);
}

gs_status gs_run__join(gs_train_options *o, gs_run_kind kind, char device[GS_DEVICE_WORDS])
{
    GS_TRY(gs_ranks_open());
    if (gs_ranks_count() == 1)
        return GS_OK;
    gs_ranks_watch(o->io_timeout);
    GS_TRY(compare(o));
    GS_TRY(check_kind(o, kind));
    GS_TRY(take_device(o, device));
    if (gs_ranks_self() == 0)
        return GS_OK;
    o->keep_logits = o->keep_logits || o->logits != NULL || o->argmax != NULL; /* its passes store the same rows */
    o->save = o->metrics = o->checkpoint = o->checkpoint_every = o->logits = o->argmax = NULL;
    o->warn = NULL;
    return GS_OK;
}

/* ---- together ------------------------------------------------------------- */

/* Each rank reads files of its own machine. */
gs_status gs_run__compare_weights(const gs_run *r)
{
    const gs_params *const p = &r->session->run.params;
    uint64_t own = gs_hash64(p->values, p->elements * sizeof(*p->values));

    for (int k = 0; k < GS_PARAMS_STATES; k++)
        if (p->state[k] != NULL)
            own = gs_hash64_seeded(p->state[k], p->elements * sizeof(*p->values), own);
    return gs_run__same_of_ranks(own, "begins with other weights than rank 0: give all machines the same file of "
                                 "weights, or the same checkpoint");
}

/* Whoever is asked, all stop. */
gs_status gs_run__check_stop(const gs_run *r)
{
    uint64_t asked = r->options.stop != NULL && *r->options.stop;

    GS_TRY(gs_ranks_sum_u64(&asked, 1));
    return asked > 0 ? gs_fail(GS_EINTERRUPTED, "interrupted") : GS_OK;
}

bool gs_run__tables_are_shared(const gs_run *r) { return gs_ranks_count() > 1 && r->session->program->tables > 0; }

gs_status gs_run__give_tables(const gs_run *r, gs_status st)
{
    return gs_run__tables_are_shared(r) ? gs_session_give_rows(r->session, st) : st;
}

gs_status gs_run__peak_bytes(uint64_t *most)
{
    const uint64_t own = gs_process_peak_bytes();
    uint64_t all[GS_RANKS_MOST] = {0};
    const gs_status st = gs_ranks_gather(all, &own, sizeof(own));

    *most = own;
    for (uint32_t k = 0; k < gs_ranks_count(); k++)
        *most = GS_MAX(*most, all[k]);
    return st;
}

/* Others may wait for this one: it ends them, but where all know. */
gs_status gs_run__end_all(gs_status st)
{
    if (st != GS_OK && gs_ranks_count() > 1 && !gs_ranks_have_failed())
        gs_ranks_abort(gs_last_error());
    return st;
}
