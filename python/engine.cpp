/* engine.cpp - gnnstream.h for Python, call by call; what is pleasant to use is made of it in gnnstream/ beside.
 *
 * caller.h says on which thread calls run, and what threads, forks and the end of the interpreter do to them. */
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "caller.h"
#include "gnnstream.h"

using namespace nb::literals;

/* What pointers in a struct of options point to, for as long as it is used. */
using Strings = std::deque<std::string>;

/* ---- numbers and texts ------------------------------------------------------ */

static nb::object to_py(bool v) { return nb::bool_(v); }
static nb::object to_py(uint32_t v) { return nb::int_(v); }
static nb::object to_py(uint64_t v) { return nb::int_(v); }
static nb::object to_py(double v) { return nb::float_(v); }
static nb::object to_py(gs_taken v) { return nb::int_(static_cast<int>(v)); }
static nb::object to_py(const char *v) { return v == nullptr ? nb::object(nb::none()) : nb::object(text_from(v)); }
template <size_t n> static nb::object to_py(const char (&v)[n]) { return text_from(v); }
template <class T, size_t n> static nb::object to_py(const T (&v)[n])
{
    nb::list l;
    for (const T &e : v)
        l.append(to_py(e));
    return l;
}

/* The bytes of a path or a text, str, bytes or PathLike, as the system has them. C would cut it at a NUL. */
static std::string text_of(nb::handle value, const char *what)
{
    const nb::object plain = nb::steal(PyOS_FSPath(value.ptr()));
    const nb::object bytes = !plain.is_valid() ? nb::object()
                             : PyUnicode_Check(plain.ptr()) ? nb::steal(PyUnicode_EncodeFSDefault(plain.ptr())) : plain;
    if (!bytes.is_valid()) {
        PyErr_Clear();
        const std::string given = nb::cast<std::string>(nb::repr(value));
        throw nb::type_error((std::string(what) + ": " + given + " is of another type").c_str());
    }
    std::string text(PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
    if (text.find('\0') != std::string::npos)
        throw nb::value_error((std::string(what) + ": has a NUL character, which no path or text may have").c_str());
    return text;
}

static void assign(const char *&field, nb::handle value, const char *name, Strings &strings)
{
    if (value.is_none()) {
        field = nullptr;
        return;
    }
    strings.push_back(text_of(value, name));
    field = strings.back().c_str();
}
static void assign(bool &field, nb::handle value, const char *, Strings &) { field = nb::cast<bool>(value); }
static void assign(uint32_t &field, nb::handle value, const char *, Strings &) { field = nb::cast<uint32_t>(value); }
static void assign(double &field, nb::handle value, const char *, Strings &) { field = nb::cast<double>(value); }
/* Sizes may be texts: "256M". */
static void assign(uint64_t &field, nb::handle value, const char *name, Strings &)
{
    if (!nb::isinstance<nb::str>(value))
        field = nb::cast<uint64_t>(value);
    else if (gs_size_parse(&field, text_of(value, name).c_str()) != GS_OK)
        throw nb::value_error((std::string(name) + ": " + gs_last_error()).c_str());
}

#include "fields.h"

/* Sets the fields that `values` names; gnnstream/_options.py has looked at the names. */
template <class Options> static void fill(Options &o, nb::dict values, Strings &strings)
{
    for (auto [name, value] : values) {
        const std::string field = nb::cast<std::string>(name);
        bool known;
        try {
            known = set_field(o, field, value, strings);
        } catch (const nb::cast_error &) {
            const std::string given = nb::cast<std::string>(nb::repr(value));
            throw nb::type_error((field + ": " + given + " is of another type").c_str());
        }
        if (!known)
            throw nb::type_error((field + ": no such option").c_str());
    }
}

/* ---- calls ------------------------------------------------------------------- */

struct Listener {
    Caller &caller;
    nb::object progress, warn;
};

static void on_progress(void *context, const char *what, double done)
{
    Listener *const l = static_cast<Listener *>(context);
    l->caller.tell(l->progress, what, done);
}

static void on_warn(void *context, const char *line)
{
    Listener *const l = static_cast<Listener *>(context);
    l->caller.tell(l->warn, line);
}

/* ---- stores ------------------------------------------------------------------ */

using Ids = nb::ndarray<int64_t, nb::c_contig, nb::device::cpu>;

static void generate(nb::object kind, nb::object folder, nb::dict values, nb::object progress)
{
    const std::string what = text_of(kind, "kind"), where = text_of(folder, "folder");
    Caller call;
    Strings strings;
    Listener listener{call, progress, nb::none()};
    gs_generate_options o;
    gs_generate_options_init(&o);
    fill(o, values, strings);
    o.progress = progress.is_none() ? nullptr : on_progress;
    o.context = &listener;
    o.stop = &call.stop();
    call([&] { return gs_generate(what.c_str(), where.c_str(), &o); });
}

static nb::object partition(nb::object input, nb::object store, nb::dict values, nb::object progress, nb::object warn)
{
    const std::string from = text_of(input, "source"), to = text_of(store, "store");
    Caller call;
    Strings strings;
    Listener listener{call, progress, warn};
    gs_partition_options o;
    gs_partition_report report;
    gs_partition_options_init(&o);
    fill(o, values, strings);
    o.progress = progress.is_none() ? nullptr : on_progress;
    o.warn = warn.is_none() ? nullptr : on_warn;
    o.context = &listener;
    o.stop = &call.stop();
    call([&] { return gs_partition(from.c_str(), to.c_str(), &o, &report); });
    return to_py(report);
}

static void shard(nb::object store, uint32_t ranks, nb::object out, bool force, nb::object progress)
{
    const std::string from = text_of(store, "store"), to = text_of(out, "out");
    Caller call;
    Listener listener{call, progress, nb::none()};
    gs_shard_options o;
    gs_shard_options_init(&o);
    o.force = force;
    o.progress = progress.is_none() ? nullptr : on_progress;
    o.context = &listener;
    o.stop = &call.stop();
    call([&] { return gs_shard(from.c_str(), ranks, to.c_str(), &o); });
}

static nb::object inspect(nb::object store)
{
    const std::string path = text_of(store, "store");
    Caller call;
    gs_store_summary summary;
    call([&] { return gs_inspect(&summary, path.c_str()); });
    return to_py(summary);
}

static nb::object inspect_types(nb::object store)
{
    const std::string path = text_of(store, "store");
    Caller call;
    auto types = std::make_unique<gs_type_table>();
    call([&] { return gs_inspect_types(types.get(), path.c_str()); });
    return to_py(*types);
}

static nb::object inspect_features(nb::object store)
{
    const std::string path = text_of(store, "store");
    Caller call;
    auto named = std::make_unique<gs_feature_table>();
    call([&] { return gs_inspect_features(named.get(), path.c_str()); });
    return to_py(*named);
}

/* start[n + 1] is filled, or with `source` read; relation -1: all edges. */
static void in_edges(nb::object store, int64_t relation, Ids start, std::optional<Ids> source)
{
    const std::string path = text_of(store, "store");
    Caller call;
    if (source && (start.size() == 0 || source->size() != static_cast<uint64_t>(start.data()[start.size() - 1])))
        throw nb::value_error("source: must have as many numbers as start says");
    const uint32_t type = relation < 0 ? GS_ALL_RELATIONS : static_cast<uint32_t>(relation);
    call([&] { return gs_read_in_edges(start.data(), source ? source->data() : nullptr, path.c_str(), type, 0); });
}

static nb::object inspect_weights(nb::object file)
{
    const std::string path = text_of(file, "file");
    Caller call;
    gs_weights_summary summary;
    call([&] { return gs_inspect_weights(&summary, path.c_str()); });
    return to_py(summary);
}

static void verify(nb::object store, uint64_t memory)
{
    const std::string path = text_of(store, "store");
    Caller call;
    call([&] { return gs_verify(path.c_str(), memory); });
}

static gs_train_options train_options(nb::dict values, Strings &strings, bool predict = false)
{
    gs_train_options o;
    predict ? gs_predict_options_init(&o) : gs_train_options_init(&o);
    fill(o, values, strings);
    return o;
}

static nb::object plan(nb::object store, nb::dict values)
{
    const std::string path = text_of(store, "store");
    Caller call;
    Strings strings;
    gs_train_options o = train_options(values, strings);
    auto report = std::make_unique<gs_plan_report>();
    o.stop = &call.stop();
    call([&] { return gs_plan_train(report.get(), path.c_str(), &o); });
    return to_py(*report);
}

/* What the compiler makes of a model, as a text. */
static std::string print_model(nb::dict values, uint32_t features, uint32_t classes, uint32_t edge_types, bool dot)
{
    Caller call;
    Strings strings;
    gs_train_options o = train_options(values, strings);
    gs_model_graph graph = {features, classes, edge_types, false, false, 8, 0};
    char *text = nullptr;
    size_t length = 0;
    FILE *const file = open_memstream(&text, &length);
    if (file == nullptr)
        throw std::bad_alloc();
    std::string out;
    try {
        call([&] { return gs_print_model(file, &o, &graph, dot); });
    } catch (...) {
        fclose(file);
        free(text);
        throw;
    }
    fclose(file);
    out.assign(text, length);
    free(text);
    return out;
}

/* ---- a run ------------------------------------------------------------------- */

using Row = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstRow = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/* A tensor as the engine lists it, with a name of its own; and all of them as (name, shape, learned). */
struct Tensor {
    gs_tensor_info info;
    std::string name;
};
template <class Get> static std::vector<Tensor> read_tensors(uint32_t count, const Get &get)
{
    std::vector<Tensor> all(count);
    for (uint32_t i = 0; i < count; i++) {
        if (get(i, &all[i].info) != GS_OK)
            fail(GS_EINVAL, gs_last_error());
        all[i].name = all[i].info.name;
    }
    return all;
}
static nb::list list_tensors(const std::vector<Tensor> &all)
{
    nb::list l;
    for (const Tensor &each : all) {
        nb::list shape;
        for (uint32_t k = 0; k < each.info.dimensions; k++)
            shape.append(each.info.shape[k]);
        l.append(nb::make_tuple(each.name, nb::tuple(shape), each.info.learned));
    }
    return l;
}

class Run {
public:
    Run(nb::object store, nb::dict values, bool predict, nb::object warn) : listener{call, nb::none(), warn}
    {
        const std::string path = text_of(store, "store");
        Strings strings;
        gs_train_options o = train_options(values, strings, predict);
        o.stop = &call.stop();
        o.warn = on_warn;
        o.context = &listener;
        call([&] { return gs_run_open(&run, path.c_str(), &o, predict ? GS_RUN_PREDICT : GS_RUN_TRAIN); });
    }
    ~Run()
    {
        call.last([&] { return end(), GS_OK; });
    }

    void close()
    {
        if (call.here()) /* what a forked child has is the parent's */
            call([&] { return end(), GS_OK; });
    }
    nb::object epoch()
    {
        gs_epoch_report report;
        on_run([&](gs_run *r) { return gs_run_epoch(r, &report); });
        return to_py(report);
    }
    nb::object evaluate()
    {
        gs_evaluation report;
        on_run([&](gs_run *r) { return gs_run_evaluate(r, &report); });
        return to_py(report);
    }
    nb::object finish()
    {
        auto report = std::make_unique<gs_train_report>();
        on_run([&](gs_run *r) { return gs_run_finish(r, report.get()); });
        return to_py(*report);
    }
    nb::object plan()
    {
        auto report = std::make_unique<gs_plan_report>();
        on_run([&](gs_run *r) { return gs_run_plan(r, report.get()); });
        return to_py(*report);
    }
    void logits(Row out)
    {
        on_run([&](gs_run *r) { return gs_run_logits(r, out.data(), out.size()); });
    }
    void write_logits(nb::object file)
    {
        const std::string path = text_of(file, "file");
        on_run([&](gs_run *r) { return gs_run_write_logits(r, path.c_str()); });
    }
    void save(nb::object file)
    {
        const std::string path = text_of(file, "file");
        on_run([&](gs_run *r) { return gs_run_save(r, path.c_str()); });
    }
    void load(nb::object file)
    {
        const std::string path = text_of(file, "file");
        on_run([&](gs_run *r) { return gs_run_load(r, path.c_str()); });
    }
    void get_tensor(uint32_t i, Row out)
    {
        on_run([&](gs_run *r) { return gs_run_get_tensor(r, i, out.data(), out.size()); });
    }
    void set_tensor(uint32_t i, ConstRow values)
    {
        on_run([&](gs_run *r) { return gs_run_set_tensor(r, i, values.data(), values.size()); });
    }

    /* Of any thread, also while another one waits in epoch(): */
    nb::object progress()
    {
        gs_progress now;
        if (meanwhile([&](gs_run *r) { return gs_run_progress(r, &now); }) != GS_OK)
            fail(GS_EINVAL, gs_last_error());
        return to_py(now);
    }
    void stop() { call.stop() = 1; }
    uint64_t rows()
    {
        return meanwhile([](gs_run *r) { return gs_run_vertices(r); });
    }
    uint32_t columns()
    {
        return meanwhile([](gs_run *r) { return gs_run_columns(r); });
    }
    nb::list tensors()
    {
        return list_tensors(meanwhile([](gs_run *r) {
            return read_tensors(gs_run_tensors(r),
                                [r](uint32_t i, gs_tensor_info *out) { return gs_run_tensor(r, i, out); });
        }));
    }

private:
    static constexpr const char *CLOSED = "the run is closed; take dict(run.state_dict()) and run.logits() before";

    /* A call in turn. It may find that the run was closed while it waited. */
    template <class Call> void on_run(const Call &what)
    {
        bool closed = false;
        call([&] { return closed = run == nullptr, closed ? GS_OK : what(run); });
        if (closed)
            throw nb::value_error(CLOSED);
    }
    /* A short call beside one that is under way; makes no Python objects, with which other objects may end. */
    template <class Call> std::invoke_result_t<Call, gs_run *> meanwhile(const Call &what)
    {
        call.check_here();
        std::lock_guard<std::mutex> hold(closing);
        if (run == nullptr)
            throw nb::value_error(CLOSED);
        return what(run);
    }
    void end()
    {
        gs_run *ended;
        {
            std::lock_guard<std::mutex> hold(closing);
            ended = run;
            run = nullptr;
        }
        gs_run_close(ended);
    }

    Caller call;
    Listener listener;
    std::mutex closing; /* of those that use `run` beside a call, and of who sets it to NULL */
    gs_run *run = nullptr;
};

/* ---- a layer ----------------------------------------------------------------- */

using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using ConstFloats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using ConstIds = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/* Memory of a GPU: where, and how many floats. None: none. */
using There = std::optional<std::pair<uintptr_t, uint64_t>>;

/* Arrays, numpy's or torch's, are read and written where they are. */
class Layer {
public:
    Layer(uint64_t vertices, ConstIds source, ConstIds destination, std::optional<ConstFloats> weight,
          std::optional<ConstIds> type, uint32_t edge_types, uint32_t in, uint32_t out, bool no_dropout,
          nb::dict values)
        : vertices(vertices), in(in), out(out)
    {
        Strings strings;
        gs_train_options o = train_options(values, strings);
        const uint64_t edges = source.size();
        check(destination.size() == edges && (!weight || weight->size() == edges) && (!type || type->size() == edges),
              "edges, their weights and their types must be as many");
        on_cpu = o.device == nullptr || std::string(o.device) == "cpu";
        const gs_layer_graph graph = {vertices, edges, source.data(), destination.data(),
                                      weight ? weight->data() : nullptr, type ? type->data() : nullptr, edge_types,
                                      no_dropout};
        call([&] { return gs_layer_open(&layer, &graph, in, out, &o); });
    }
    ~Layer()
    {
        call.last([&] { return gs_layer_close(layer), GS_OK; });
    }

    nb::list tensors()
    {
        return list_tensors(read_tensors(gs_layer_tensors(layer), [&](uint32_t i, gs_tensor_info *info) {
            return gs_layer_tensor(layer, i, info);
        }));
    }
    void start(uint32_t i, Floats values)
    {
        call([&] { return gs_layer_start(layer, i, values.data(), values.size()); });
    }
    void forward(ConstFloats x, nb::list parameters, bool training, uint32_t step, Floats y)
    {
        const std::vector<const float *> parameter = pointers<ConstFloats, const float>(parameters);
        check(on_cpu, "arrays of the host, for a layer on a GPU");
        check(x.size() == vertices * in && y.size() == vertices * out, "x must be [vertices, in], y [vertices, out]");
        call([&] { return gs_layer_forward(layer, x.data(), parameter.data(), training, step, y.data()); });
    }
    void backward(ConstFloats x, nb::list parameters, ConstFloats y_gradient, std::optional<Floats> x_gradient,
                  nb::list gradients)
    {
        const std::vector<const float *> parameter = pointers<ConstFloats, const float>(parameters);
        const std::vector<float *> gradient = pointers<Floats, float>(gradients);
        check(on_cpu, "arrays of the host, for a layer on a GPU");
        check(x.size() == vertices * in && y_gradient.size() == vertices * out &&
                  (!x_gradient || x_gradient->size() == vertices * in),
              "gradients have the shapes of x and y");
        call([&] {
            return gs_layer_backward(layer, x.data(), parameter.data(), y_gradient.data(),
                                     x_gradient ? x_gradient->data() : nullptr, gradient.data());
        });
    }

    /* The same on a GPU, behind `stream` there. */
    void forward_there(There x, std::vector<There> parameters, bool training, uint32_t step, There y, uintptr_t stream)
    {
        const std::vector<float *> parameter = pointers_there(parameters);
        float *const from = rows_there(x, in), *const to = rows_there(y, out);
        call([&] {
            const gs_status st = gs_layer_set_stream(layer, reinterpret_cast<void *>(stream));
            return st == GS_OK ? gs_layer_forward(layer, from, parameter.data(), training, step, to) : st;
        });
    }
    void backward_there(There x, std::vector<There> parameters, There y_gradient, There x_gradient,
                        std::vector<There> gradients, uintptr_t stream)
    {
        const std::vector<float *> parameter = pointers_there(parameters), gradient = pointers_there(gradients);
        float *const from = rows_there(x, in), *const of_y = rows_there(y_gradient, out),
                     *const of_x = rows_there(x_gradient, in);
        call([&] {
            const gs_status st = gs_layer_set_stream(layer, reinterpret_cast<void *>(stream));
            return st == GS_OK ? gs_layer_backward(layer, from, parameter.data(), of_y, of_x, gradient.data()) : st;
        });
    }

private:
    static float *pointer(const There &t) { return t ? reinterpret_cast<float *>(t->first) : nullptr; }
    float *rows_there(const There &t, uint32_t width) const
    {
        check(!on_cpu, "memory of a GPU, for a layer on the CPU");
        check(!t || t->second == vertices * width, "x must be [vertices, in], y [vertices, out], as their gradients");
        return pointer(t);
    }
    std::vector<float *> pointers_there(const std::vector<There> &arrays) const
    {
        std::vector<float *> out;
        check(arrays.size() == gs_layer_tensors(layer), "one array for each tensor of the layer");
        for (const There &each : arrays) {
            gs_tensor_info info;
            gs_layer_tensor(layer, static_cast<uint32_t>(out.size()), &info);
            check(!each || each->second == info.count, "an array must have the shape of its tensor");
            out.push_back(pointer(each));
        }
        return out;
    }
    static void check(bool right, const char *what)
    {
        if (!right)
            throw nb::value_error(what);
    }
    /* Where the arrays of a list are, one for each tensor and of its size; None is null. They live as long as it. */
    template <class Array, class T> std::vector<T *> pointers(nb::list arrays) const
    {
        std::vector<T *> out;
        check(arrays.size() == gs_layer_tensors(layer), "one array for each tensor of the layer");
        for (nb::handle each : arrays) {
            gs_tensor_info info;
            gs_layer_tensor(layer, static_cast<uint32_t>(out.size()), &info);
            if (each.is_none()) {
                out.push_back(nullptr);
                continue;
            }
            const Array array = nb::cast<Array>(each, false);
            check(array.size() == info.count, "an array must have the shape of its tensor");
            out.push_back(array.data());
        }
        return out;
    }

    Caller call;
    gs_layer *layer = nullptr;
    uint64_t vertices;
    uint32_t in, out;
    bool on_cpu = true;
};

/* ---- batches ------------------------------------------------------------------ */

using Bytes = nb::ndarray<uint8_t, nb::c_contig, nb::device::cpu>;

/* Arrays of a batch are the caller's, and filled where they are. */
class Loader {
public:
    /* Of pairs, where there is a `destination`: ids are their sources. Of rows that are picked, where seeds are -1. */
    Loader(nb::object store, nb::dict values, int seeds, std::optional<ConstIds> ids,
           std::optional<ConstIds> destination, int wrong, double amount, bool leave_out)
    {
        const std::string path = text_of(store, "store");
        Strings strings;
        gs_train_options o = train_options(values, strings);
        o.stop = &call.stop();
        const int64_t *const id = ids ? ids->data() : nullptr;
        const uint64_t count = ids ? ids->size() : 0;
        if (destination && destination->size() != count)
            throw nb::value_error("destination: must have as many numbers as ids");
        call([&] {
            gs_status st;
            if (seeds < 0) {
                st = gs_loader_open_rows(&loader, path.c_str(), &o);
            } else if (destination) {
                const gs_loader_pairs pairs = {id, destination->data(), count, static_cast<gs_loader_wrong>(wrong),
                                               amount, leave_out};
                st = gs_loader_open_pairs(&loader, path.c_str(), &o, &pairs);
                paired = pairs.wrong == GS_WRONG_PAIRS;
            } else {
                st = gs_loader_open(&loader, path.c_str(), &o, static_cast<gs_loader_seeds>(seeds), id, count);
            }
            return st == GS_OK ? gs_loader_inspect(loader, &report) : st;
        });
    }
    ~Loader()
    {
        call.last([&] { return gs_loader_close(loader), GS_OK; });
    }

    void close()
    {
        if (call.here())
            call([&] { return gs_loader_close(loader), loader = nullptr, GS_OK; });
    }
    nb::object inspect()
    {
        on_loader([&](gs_loader *l) { return gs_loader_inspect(l, &report); });
        return to_py(report);
    }
    void begin(uint32_t epoch, uint32_t first)
    {
        on_loader([&](gs_loader *l) { return gs_loader_begin(l, epoch, first); });
    }
    /* None behind the last batch of the epoch. */
    nb::object next()
    {
        bool over = false;
        on_loader([&](gs_loader *l) {
            const gs_status st = gs_loader_next(l, &batch);
            return over = st == GS_ENOTFOUND, over ? GS_OK : st;
        });
        return over ? nb::object(nb::none()) : to_py(batch);
    }
    void fill(std::optional<Ids> vertex, std::optional<Ids> edge_index, std::optional<Ids> edge_type,
              std::optional<Floats> edge_weight, std::optional<Floats> edge_features, std::optional<Floats> features,
              std::optional<Ids> classes, std::optional<Floats> labels, std::optional<Bytes> split,
              std::optional<Ids> row, std::optional<Ids> pair, std::optional<Ids> pair_source,
              std::optional<Ids> pair_destination)
    {
        const uint64_t n = batch.vertices, m = batch.edges, p = batch.pairs;
        gs_loader_arrays a = {};
        a.vertex = of(vertex, n, "vertex");
        a.source = of(edge_index, 2 * m, "edge_index");
        a.destination = a.source != nullptr ? a.source + m : nullptr;
        a.edge_type = of(edge_type, m, "edge_type");
        a.edge_weight = of(edge_weight, m, "edge_weight");
        a.edge_features = of(edge_features, m * report.edge_features, "edge_features");
        a.features = of(features, n * report.features, "features");
        a.classes = of(classes, n, "classes");
        a.labels = of(labels, n * report.label_columns, "labels");
        a.split = of(split, n, "split");
        a.row = of(row, n, "row");
        a.pair = of(pair, p, "pair");
        a.pair_source = of(pair_source, p + (paired ? batch.wrong : 0), "pair_source");
        a.pair_destination = of(pair_destination, p + batch.wrong, "pair_destination");
        on_loader([&](gs_loader *l) { return gs_loader_fill(l, &a); });
    }

    void pick(ConstIds ids, std::optional<Bytes> features_at_rest, std::optional<Ids> classes,
              std::optional<Floats> labels, std::optional<Bytes> split, std::optional<Ids> row)
    {
        const uint64_t n = ids.size();
        gs_loader_arrays a = {};
        a.features_at_rest = of(features_at_rest, n * report.feature_row_bytes, "features_at_rest");
        a.classes = of(classes, n, "classes");
        a.labels = of(labels, n * report.label_columns, "labels");
        a.split = of(split, n, "split");
        a.row = of(row, n, "row");
        on_loader([&](gs_loader *l) { return gs_loader_pick(l, ids.data(), n, &a); });
    }

private:
    template <class Call> void on_loader(const Call &what)
    {
        bool closed = false;
        call([&] { return closed = loader == nullptr, closed ? GS_OK : what(loader); });
        if (closed)
            throw nb::value_error("the loader is closed");
    }
    template <class Array> static auto of(std::optional<Array> &array, uint64_t count, const char *name)
        -> decltype(array->data())
    {
        if (array && array->size() != count)
            throw nb::value_error((std::string(name) + ": must have " + std::to_string(count) + " numbers").c_str());
        return array ? array->data() : nullptr;
    }

    Caller call;
    gs_loader *loader = nullptr;
    gs_loader_report report = {};
    gs_loader_batch batch = {};
    bool paired = false; /* random ones are pairs, too */
};

NB_MODULE(_engine, m)
{
    auto names = [](const auto &fields) {
        nb::list l;
        for (const char *name : fields)
            l.append(name);
        return nb::tuple(l);
    };
    watch_forks_and_exit();
    nb::set_leak_warnings(false); /* modules of other libraries may hold layers until the interpreter is gone */
    m.attr("version") = gs_version();
    m.attr("generate_fields") = names(gs_generate_options_fields);
    m.attr("partition_fields") = names(gs_partition_options_fields);
    m.attr("train_fields") = names(gs_train_options_fields);
    m.def("generate", generate, "kind"_a, "folder"_a, "options"_a, "progress"_a.none());
    m.def("partition", partition, "input"_a, "store"_a, "options"_a, "progress"_a.none(), "warn"_a.none());
    m.def("shard", shard, "store"_a, "ranks"_a, "out"_a, "force"_a, "progress"_a.none());
    m.def("inspect", inspect, "store"_a);
    m.def("inspect_types", inspect_types, "store"_a);
    m.def("inspect_features", inspect_features, "store"_a);
    m.def("in_edges", in_edges, "store"_a, "relation"_a, "start"_a, "source"_a.none());
    m.def("inspect_weights", inspect_weights, "file"_a);
    m.def("verify", verify, "store"_a, "memory"_a = 0);
    m.def("plan", plan, "store"_a, "options"_a);
    m.def("print_model", print_model, "options"_a, "features"_a, "classes"_a, "edge_types"_a, "dot"_a);
    nb::class_<Run>(m, "Run")
        .def(nb::init<nb::object, nb::dict, bool, nb::object>(), "store"_a, "options"_a, "predict"_a, "warn"_a)
        .def("close", &Run::close)
        .def("epoch", &Run::epoch)
        .def("evaluate", &Run::evaluate)
        .def("finish", &Run::finish)
        .def("plan", &Run::plan)
        .def("progress", &Run::progress)
        .def("stop", &Run::stop)
        .def("columns", &Run::columns)
        .def("rows", &Run::rows)
        .def("logits", &Run::logits, "out"_a)
        .def("write_logits", &Run::write_logits, "file"_a)
        .def("save", &Run::save, "file"_a)
        .def("load", &Run::load, "file"_a)
        .def("tensors", &Run::tensors)
        .def("get_tensor", &Run::get_tensor, "index"_a, "out"_a)
        .def("set_tensor", &Run::set_tensor, "index"_a, "values"_a);
    nb::class_<Layer>(m, "Layer")
        .def(nb::init<uint64_t, ConstIds, ConstIds, std::optional<ConstFloats>, std::optional<ConstIds>, uint32_t,
                      uint32_t, uint32_t, bool, nb::dict>(),
             "vertices"_a, "source"_a, "destination"_a, "weight"_a.none(), "type"_a.none(), "edge_types"_a,
             "in_width"_a, "out_width"_a, "no_dropout"_a, "options"_a)
        .def("tensors", &Layer::tensors)
        .def("start", &Layer::start, "index"_a, "values"_a)
        .def("forward", &Layer::forward, "x"_a, "parameters"_a, "training"_a, "step"_a, "y"_a)
        .def("backward", &Layer::backward, "x"_a, "parameters"_a, "y_gradient"_a, "x_gradient"_a.none(), "gradients"_a)
        .def("forward_there", &Layer::forward_there, "x"_a, "parameters"_a, "training"_a, "step"_a, "y"_a, "stream"_a)
        .def("backward_there", &Layer::backward_there, "x"_a, "parameters"_a, "y_gradient"_a, "x_gradient"_a.none(),
             "gradients"_a, "stream"_a);
    nb::class_<Loader>(m, "Loader")
        .def(nb::init<nb::object, nb::dict, int, std::optional<ConstIds>, std::optional<ConstIds>, int, double, bool>(),
             "store"_a, "options"_a, "seeds"_a, "ids"_a.none() = nb::none(), "destination"_a.none() = nb::none(),
             "wrong"_a = 0, "amount"_a = 0.0, "leave_out"_a = false)
        .def("close", &Loader::close)
        .def("inspect", &Loader::inspect)
        .def("begin", &Loader::begin, "epoch"_a, "first"_a)
        .def("next", &Loader::next)
        .def("pick", &Loader::pick, "ids"_a, "features_at_rest"_a.none() = nb::none(),
             "classes"_a.none() = nb::none(), "labels"_a.none() = nb::none(), "split"_a.none() = nb::none(),
             "row"_a.none() = nb::none())
        .def("fill", &Loader::fill, "vertex"_a.none() = nb::none(), "edge_index"_a.none() = nb::none(),
             "edge_type"_a.none() = nb::none(), "edge_weight"_a.none() = nb::none(),
             "edge_features"_a.none() = nb::none(), "features"_a.none() = nb::none(), "classes"_a.none() = nb::none(),
             "labels"_a.none() = nb::none(), "split"_a.none() = nb::none(), "row"_a.none() = nb::none(),
             "pair"_a.none() = nb::none(), "pair_source"_a.none() = nb::none(),
             "pair_destination"_a.none() = nb::none());
}
