/* engine.cpp - gnnstream.h for Python, call by call; what is pleasant to use is made of it in gnnstream/ beside.
 *
 * Every call runs on a thread of its own without the interpreter's lock, while the thread that called waits and looks
 * for Ctrl-C: the engine's products run with a stack pointer inside the heap, where no handler of a signal may put its
 * frame, so that thread (and all that it starts) has every signal blocked. */
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "gnnstream.h"

namespace nb = nanobind;
using namespace nb::literals;

/* What pointers in a struct of options point to, for as long as it is used. */
using Strings = std::deque<std::string>;

/* ---- numbers and texts ------------------------------------------------------ */

static nb::object to_py(bool v) { return nb::bool_(v); }
static nb::object to_py(uint32_t v) { return nb::int_(v); }
static nb::object to_py(uint64_t v) { return nb::int_(v); }
static nb::object to_py(double v) { return nb::float_(v); }
static nb::object to_py(gs_taken v) { return nb::int_(static_cast<int>(v)); }
static nb::object to_py(const char *v) { return v == nullptr ? nb::object(nb::none()) : nb::object(nb::str(v)); }
template <size_t n> static nb::object to_py(const char (&v)[n]) { return nb::str(v); }
template <class T, size_t n> static nb::object to_py(const T (&v)[n])
{
    nb::list l;
    for (const T &e : v)
        l.append(to_py(e));
    return l;
}

static void assign(const char *&field, nb::handle value, Strings &strings)
{
    if (value.is_none()) {
        field = nullptr;
        return;
    }
    strings.push_back(nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(value)));
    field = strings.back().c_str();
}
static void assign(bool &field, nb::handle value, Strings &) { field = nb::cast<bool>(value); }
static void assign(uint32_t &field, nb::handle value, Strings &) { field = nb::cast<uint32_t>(value); }
static void assign(double &field, nb::handle value, Strings &) { field = nb::cast<double>(value); }
/* Sizes may be texts: "256M". */
static void assign(uint64_t &field, nb::handle value, Strings &)
{
    if (!nb::isinstance<nb::str>(value))
        field = nb::cast<uint64_t>(value);
    else if (gs_size_parse(&field, nb::cast<std::string>(value).c_str()) != GS_OK)
        throw nb::value_error(gs_last_error());
}

/* With the line of a model's text that it is about, where it is about one. */
static std::string last_error()
{
    const std::string line = gs_last_error(), place = gs_last_error_place();
    return place.empty() ? line : line + "\n" + place;
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

[[noreturn]] static void fail(gs_status st, const std::string &line)
{
    nb::object error = nb::module_::import_("gnnstream.errors").attr("of_status")(static_cast<int>(st), line);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

/* A thread that makes the engine's calls, one after the other. */
class Caller {
public:
    Caller()
    {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before); /* inherited by what starts now */
        thread = std::thread([this] { serve(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~Caller()
    {
        {
            std::lock_guard<std::mutex> hold(mutex);
            quit = true;
        }
        changed.notify_all();
        nb::gil_scoped_release release;
        thread.join();
    }

    /* Waits for `call`; Ctrl-C sets `stop`. With the interpreter's lock, which is given up meanwhile. */
    void operator()(const std::function<gs_status()> &call)
    {
        std::optional<nb::python_error> raised;
        {
            nb::gil_scoped_release release;
            std::unique_lock<std::mutex> hold(mutex);
            job = &call;
            changed.notify_all();
            while (!changed.wait_for(hold, std::chrono::milliseconds(50), [this] { return job == nullptr; })) {
                hold.unlock();
                {
                    nb::gil_scoped_acquire acquire;
                    if (!raised && PyErr_CheckSignals() != 0) {
                        raised.emplace();
                        stop = 1;
                    }
                }
                hold.lock();
            }
        }
        if (raised) {
            stop = 0; /* the call may have been done by then, and the next one is not to end for it */
            throw std::move(*raised);
        }
        if (thrown) { /* by a function of the caller's */
            nb::python_error error = std::move(*thrown);
            thrown.reset();
            throw std::move(error);
        }
        if (status != GS_OK)
            fail(status, error);
    }

    /* Runs a Python function inside a call; what it raises ends the call and is raised there. */
    template <class... Args> void tell(const nb::object &function, Args... args)
    {
        nb::gil_scoped_acquire acquire;
        if (thrown)
            return;
        try {
            function(args...);
        } catch (nb::python_error &e) {
            thrown.emplace(std::move(e));
            stop = 1;
        }
    }

    volatile int stop = 0;

private:
    void serve()
    {
        std::unique_lock<std::mutex> hold(mutex);
        for (;;) {
            changed.wait(hold, [this] { return quit || job != nullptr; });
            if (job == nullptr)
                return;
            const std::function<gs_status()> *const now = job;
            hold.unlock();
            const gs_status st = (*now)();
            std::string line = st == GS_OK ? "" : last_error();
            hold.lock();
            status = st;
            error = std::move(line);
            job = nullptr;
            changed.notify_all();
        }
    }

    std::thread thread;
    std::mutex mutex;
    std::condition_variable changed;
    const std::function<gs_status()> *job = nullptr;
    bool quit = false;
    gs_status status = GS_OK;
    std::string error;
    std::optional<nb::python_error> thrown;
};

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

static void generate(const std::string &kind, const std::string &folder, nb::dict values, nb::object progress)
{
    Caller call;
    Strings strings;
    Listener listener{call, progress, nb::none()};
    gs_generate_options o;
    gs_generate_options_init(&o);
    fill(o, values, strings);
    o.progress = progress.is_none() ? nullptr : on_progress;
    o.context = &listener;
    o.stop = &call.stop;
    call([&] { return gs_generate(kind.c_str(), folder.c_str(), &o); });
}

static nb::object partition(const std::string &input, const std::string &store, nb::dict values, nb::object progress,
                            nb::object warn)
{
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
    o.stop = &call.stop;
    call([&] { return gs_partition(input.c_str(), store.c_str(), &o, &report); });
    return to_py(report);
}

static nb::object inspect(const std::string &store)
{
    Caller call;
    gs_store_summary summary;
    call([&] { return gs_inspect(&summary, store.c_str()); });
    return to_py(summary);
}

static nb::object inspect_weights(const std::string &path)
{
    Caller call;
    gs_weights_summary summary;
    call([&] { return gs_inspect_weights(&summary, path.c_str()); });
    return to_py(summary);
}

static void verify(const std::string &store, uint64_t memory)
{
    Caller call;
    call([&] { return gs_verify(store.c_str(), memory); });
}

static gs_train_options train_options(nb::dict values, Strings &strings, bool predict = false)
{
    gs_train_options o;
    predict ? gs_predict_options_init(&o) : gs_train_options_init(&o);
    fill(o, values, strings);
    return o;
}

static nb::object plan(const std::string &store, nb::dict values)
{
    Caller call;
    Strings strings;
    gs_train_options o = train_options(values, strings);
    auto report = std::make_unique<gs_plan_report>();
    o.stop = &call.stop;
    call([&] { return gs_plan_train(report.get(), store.c_str(), &o); });
    return to_py(*report);
}

/* What the compiler makes of a model, as a text. */
static std::string print_model(nb::dict values, uint32_t features, uint32_t classes, uint32_t edge_types, bool dot)
{
    Caller call;
    Strings strings;
    gs_train_options o = train_options(values, strings);
    gs_model_graph graph = {features, classes, edge_types, false, false, 8};
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

/* (name, shape, learned) of each tensor. */
template <class Get> static nb::list list_tensors(uint32_t count, const Get &get)
{
    nb::list l;
    for (uint32_t i = 0; i < count; i++) {
        gs_tensor_info info;
        if (get(i, &info) != GS_OK)
            fail(GS_EINVAL, gs_last_error());
        nb::list shape;
        for (uint32_t k = 0; k < info.dimensions; k++)
            shape.append(info.shape[k]);
        l.append(nb::make_tuple(info.name, nb::tuple(shape), info.learned));
    }
    return l;
}

class Run {
public:
    Run(const std::string &store, nb::dict values, bool predict, nb::object warn)
        : listener{call, nb::none(), warn}
    {
        Strings strings;
        gs_train_options o = train_options(values, strings, predict);
        o.stop = &call.stop;
        o.warn = on_warn;
        o.context = &listener;
        call([&] { return gs_run_open(&run, store.c_str(), &o, predict ? GS_RUN_PREDICT : GS_RUN_TRAIN); });
    }
    ~Run() { close(); }

    void close()
    {
        if (run != nullptr)
            call([&] { return gs_run_close(run), run = nullptr, GS_OK; });
    }
    nb::object epoch()
    {
        gs_epoch_report report;
        call([&] { return gs_run_epoch(open(), &report); });
        return to_py(report);
    }
    nb::object evaluate()
    {
        gs_evaluation report;
        call([&] { return gs_run_evaluate(open(), &report); });
        return to_py(report);
    }
    nb::object finish()
    {
        auto report = std::make_unique<gs_train_report>();
        call([&] { return gs_run_finish(open(), report.get()); });
        return to_py(*report);
    }
    nb::object plan()
    {
        auto report = std::make_unique<gs_plan_report>();
        call([&] { return gs_run_plan(open(), report.get()); });
        return to_py(*report);
    }
    /* Of any thread, also while another one waits in epoch(). */
    nb::object progress()
    {
        gs_progress now;
        if (gs_run_progress(open(), &now) != GS_OK)
            fail(GS_EINVAL, gs_last_error());
        return to_py(now);
    }
    void stop() { call.stop = 1; }

    uint32_t columns() { return gs_run_columns(open()); }
    void logits(Row out) { call([&] { return gs_run_logits(open(), out.data(), out.size()); }); }
    void write_logits(const std::string &path) { call([&] { return gs_run_write_logits(open(), path.c_str()); }); }
    void save(const std::string &path) { call([&] { return gs_run_save(open(), path.c_str()); }); }
    void load(const std::string &path) { call([&] { return gs_run_load(open(), path.c_str()); }); }

    nb::list tensors()
    {
        return list_tensors(gs_run_tensors(open()), [&](uint32_t i, gs_tensor_info *out) {
            return gs_run_tensor(run, i, out);
        });
    }
    void get_tensor(uint32_t i, Row out) { call([&] { return gs_run_get_tensor(open(), i, out.data(), out.size()); }); }
    void set_tensor(uint32_t i, ConstRow values)
    {
        call([&] { return gs_run_set_tensor(open(), i, values.data(), values.size()); });
    }

private:
    gs_run *open() const { return run; }

    Caller call;
    Listener listener;
    gs_run *run = nullptr;
};

/* ---- a layer ----------------------------------------------------------------- */

using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using ConstFloats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using ConstIds = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/* Arrays, numpy's or torch's, are read and written where they are. */
class Layer {
public:
    Layer(uint64_t vertices, ConstIds source, ConstIds destination, std::optional<ConstFloats> weight,
          std::optional<ConstIds> type, uint32_t edge_types, uint32_t in, uint32_t out, nb::dict values)
        : vertices(vertices), in(in), out(out)
    {
        Strings strings;
        gs_train_options o = train_options(values, strings);
        const uint64_t edges = source.size();
        check(destination.size() == edges && (!weight || weight->size() == edges) && (!type || type->size() == edges),
              "edges, their weights and their types must be as many");
        const gs_layer_graph graph = {vertices, edges, source.data(), destination.data(),
                                      weight ? weight->data() : nullptr, type ? type->data() : nullptr, edge_types};
        call([&] { return gs_layer_open(&layer, &graph, in, out, &o); });
    }
    ~Layer()
    {
        call([&] { return gs_layer_close(layer), GS_OK; });
    }

    nb::list tensors()
    {
        return list_tensors(gs_layer_tensors(layer), [&](uint32_t i, gs_tensor_info *info) {
            return gs_layer_tensor(layer, i, info);
        });
    }
    void start(uint32_t i, Floats values)
    {
        call([&] { return gs_layer_start(layer, i, values.data(), values.size()); });
    }
    void forward(ConstFloats x, nb::list parameters, bool training, uint32_t step, Floats y)
    {
        const std::vector<const float *> parameter = pointers<ConstFloats, const float>(parameters);
        check(x.size() == vertices * in && y.size() == vertices * out, "x must be [vertices, in], y [vertices, out]");
        call([&] { return gs_layer_forward(layer, x.data(), parameter.data(), training, step, y.data()); });
    }
    void backward(nb::list parameters, ConstFloats y_gradient, std::optional<Floats> x_gradient, nb::list gradients)
    {
        const std::vector<const float *> parameter = pointers<ConstFloats, const float>(parameters);
        const std::vector<float *> gradient = pointers<Floats, float>(gradients);
        check(y_gradient.size() == vertices * out && (!x_gradient || x_gradient->size() == vertices * in),
              "gradients have the shapes of x and y");
        call([&] {
            return gs_layer_backward(layer, parameter.data(), y_gradient.data(),
                                     x_gradient ? x_gradient->data() : nullptr, gradient.data());
        });
    }

private:
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
};

NB_MODULE(_engine, m)
{
    auto names = [](const auto &fields) {
        nb::list l;
        for (const char *name : fields)
            l.append(name);
        return nb::tuple(l);
    };
    nb::set_leak_warnings(false); /* modules of other libraries may hold layers until the interpreter is gone */
    m.attr("version") = gs_version();
    m.attr("generate_fields") = names(gs_generate_options_fields);
    m.attr("partition_fields") = names(gs_partition_options_fields);
    m.attr("train_fields") = names(gs_train_options_fields);
    m.def("generate", generate, "kind"_a, "folder"_a, "options"_a, "progress"_a.none());
    m.def("partition", partition, "input"_a, "store"_a, "options"_a, "progress"_a.none(), "warn"_a.none());
    m.def("inspect", inspect, "store"_a);
    m.def("inspect_weights", inspect_weights, "path"_a);
    m.def("verify", verify, "store"_a, "memory"_a = 0);
    m.def("plan", plan, "store"_a, "options"_a);
    m.def("print_model", print_model, "options"_a, "features"_a, "classes"_a, "edge_types"_a, "dot"_a);
    nb::class_<Run>(m, "Run")
        .def(nb::init<const std::string &, nb::dict, bool, nb::object>(), "store"_a, "options"_a, "predict"_a, "warn"_a)
        .def("close", &Run::close)
        .def("epoch", &Run::epoch)
        .def("evaluate", &Run::evaluate)
        .def("finish", &Run::finish)
        .def("plan", &Run::plan)
        .def("progress", &Run::progress)
        .def("stop", &Run::stop)
        .def("columns", &Run::columns)
        .def("logits", &Run::logits, "out"_a)
        .def("write_logits", &Run::write_logits, "path"_a)
        .def("save", &Run::save, "path"_a)
        .def("load", &Run::load, "path"_a)
        .def("tensors", &Run::tensors)
        .def("get_tensor", &Run::get_tensor, "index"_a, "out"_a)
        .def("set_tensor", &Run::set_tensor, "index"_a, "values"_a);
    nb::class_<Layer>(m, "Layer")
        .def(nb::init<uint64_t, ConstIds, ConstIds, std::optional<ConstFloats>, std::optional<ConstIds>, uint32_t,
                      uint32_t, uint32_t, nb::dict>(),
             "vertices"_a, "source"_a, "destination"_a, "weight"_a.none(), "type"_a.none(), "edge_types"_a, "in_width"_a,
             "out_width"_a, "options"_a)
        .def("tensors", &Layer::tensors)
        .def("start", &Layer::start, "index"_a, "values"_a)
        .def("forward", &Layer::forward, "x"_a, "parameters"_a, "training"_a, "step"_a, "y"_a)
        .def("backward", &Layer::backward, "parameters"_a, "y_gradient"_a, "x_gradient"_a.none(), "gradients"_a);
}
