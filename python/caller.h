/* caller.h - the engine's calls from Python: one at a time, on a thread of their own, without the interpreter's lock.
 *
 * The engine's products run with a stack pointer inside the heap, where no handler of a signal may put its frame. So
 * the thread that makes the calls (and all that it starts) has every signal blocked, while the thread that called waits
 * and looks for Ctrl-C.
 *
 * Threads: calls on one run or layer may come from several threads at once; each waits for its turn, in their order.
 * Forks: the child has none of the threads. Calls there are refused, and what the parent opened is left as it is.
 * Exit: from Python's atexit on, no thread but the one that ends the interpreter takes its lock, since Python would end
 * it in the middle of C++, which aborts. Calls are stopped then, and threads that wait for them wait for ever. */
#ifndef GS_PYTHON_CALLER_H
#define GS_PYTHON_CALLER_H

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nanobind/nanobind.h>

#include "gnnstream.h"

namespace nb = nanobind;

/* Calls under way, and threads about to take the interpreter's lock, for the end of the interpreter. */
class Exit {
public:
    /* Asks to take the interpreter's lock; leave() follows. False: it is not to be taken any more. */
    bool enter()
    {
        std::lock_guard<std::mutex> hold(mutex);
        if (leaving && std::this_thread::get_id() != last)
            return false;
        inside++;
        return true;
    }
    void leave()
    {
        std::lock_guard<std::mutex> hold(mutex);
        inside -= inside > 0; /* 0 in a child that was forked meanwhile */
        changed.notify_all();
    }

    /* A call begins or ends, which a nonzero `stop` ends early. */
    void begin(volatile int *stop)
    {
        std::lock_guard<std::mutex> hold(mutex);
        if (leaving && std::this_thread::get_id() != last)
            *stop = 1;
        stops.push_back(stop);
    }
    void end(volatile int *stop)
    {
        std::lock_guard<std::mutex> hold(mutex);
        const auto at = std::find(stops.begin(), stops.end(), stop);
        if (at != stops.end())
            stops.erase(at);
        changed.notify_all();
    }

    /* Stops all calls and waits for them, but not for ever. Without the interpreter's lock, on the thread that ends
     * the interpreter. */
    void finish()
    {
        std::unique_lock<std::mutex> hold(mutex);
        leaving = true;
        last = std::this_thread::get_id();
        for (volatile int *stop : stops)
            *stop = 1;
        changed.wait_for(hold, std::chrono::seconds(10), [this] { return inside == 0 && stops.empty(); });
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<volatile int *> stops;
    std::thread::id last;
    int inside = 0;
    bool leaving = false;
};

/* Of this process; a forked child makes one of its own, for a lock may have been held. */
inline Exit *exits = new Exit;
inline unsigned forks = 0; /* between this process and the one that loaded the module */

inline void watch_forks_and_exit()
{
    pthread_atfork(nullptr, nullptr, [] {
        exits = new Exit;
        forks++;
    });
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        nb::gil_scoped_release release;
        exits->finish();
    }));
}

/* The interpreter's lock, given up while this lives. */
class Unlocked {
public:
    Unlocked() : state(PyEval_SaveThread()) {}
    ~Unlocked() { take(); }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

    /* Whether a signal's handler raises, which `raised` then has. */
    bool signalled(std::optional<nb::python_error> &raised)
    {
        take();
        if (PyErr_CheckSignals() != 0)
            raised.emplace();
        state = PyEval_SaveThread();
        return raised.has_value();
    }

private:
    void take()
    {
        while (!exits->enter())
            std::this_thread::sleep_for(std::chrono::hours(1)); /* the process is about to end */
        PyEval_RestoreThread(state);
        exits->leave();
    }

    PyThreadState *state;
};

/* The line of the last error, with that of a model's text that it is about, where it is about one. */
inline std::string last_error()
{
    const std::string line = gs_last_error(), place = gs_last_error_place();
    return place.empty() ? line : line + "\n" + place;
}

/* What the engine says, which may quote names that are not UTF-8. */
inline nb::str text_from(const std::string &text)
{
    return nb::steal<nb::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

[[noreturn]] inline void fail(gs_status st, const std::string &line)
{
    nb::object error = nb::module_::import_("gnnstream.errors").attr("of_status")(static_cast<int>(st),
                                                                                  text_from(line));
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

/* A thread that makes the engine's calls, one after the other. */
class Caller {
public:
    using Call = std::function<gs_status()>;

    Caller() : s(new State), born(forks)
    {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before); /* inherited by what starts now */
        s->thread = std::thread([state = s] { serve(*state); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~Caller()
    {
        if (!here())
            return; /* the parent's thread, and locks that nobody gives back */
        {
            std::lock_guard<std::mutex> hold(s->mutex);
            s->quit = true;
        }
        s->changed.notify_all();
        {
            Unlocked unlocked;
            s->thread.join();
        }
        delete s;
    }
    Caller(const Caller &) = delete;
    Caller &operator=(const Caller &) = delete;

    /* Whether this is the process that it was made in. */
    bool here() const { return born == forks; }
    void check_here() const
    {
        if (!here())
            throw std::runtime_error("this was opened before the process was forked, and its threads are not in the "
                                     "child; open it in the child, or start processes by spawn");
    }

    /* Waits for its turn and for `call`; Ctrl-C sets `stop`. The interpreter's lock is given up meanwhile. */
    void operator()(const Call &call)
    {
        check_here();
        if (calling())
            throw std::runtime_error("a call is under way in this thread, and what it calls (a signal's handler, a "
                                     "callback) can make no other one on the same run or layer");
        Job job(call);
        std::optional<nb::python_error> raised;
        make(job, &raised);
        if (raised)
            throw std::move(*raised);
        if (job.thrown) /* by a function of the caller's */
            throw std::move(*job.thrown);
        if (job.status != GS_OK)
            fail(job.status, job.error);
    }

    /* The same of a call that cannot fail, in destructors: nothing is thrown, in a forked child nothing done. */
    void last(const Call &call)
    {
        Job job(call);
        if (here())
            make(job, nullptr);
    }

    /* Runs a Python function inside a call; what it raises ends the call and is raised there. */
    template <class... Args> void tell(const nb::object &function, Args... args)
    {
        if (!exits->enter()) {
            s->stop = 1;
            return;
        }
        {
            nb::gil_scoped_acquire acquire;
            if (!s->job->thrown) {
                try {
                    function(args...);
                } catch (nb::python_error &e) {
                    s->job->thrown.emplace(std::move(e));
                    s->stop = 1;
                }
            }
        }
        exits->leave();
    }

    volatile int &stop() { return s->stop; }

private:
    struct Job {
        explicit Job(const Call &what) : call(&what) {}
        const Call *call;
        std::thread::id by = std::this_thread::get_id();
        gs_status status = GS_OK;
        std::string error;
        std::optional<nb::python_error> thrown;
    };
    struct State { /* not freed in a forked child: its locks may be held, and its thread is not there */
        std::thread thread;
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<Job *> turns; /* the first is made or about to be */
        Job *job = nullptr;      /* that the thread is to make */
        bool quit = false;
        volatile int stop = 0;
    };

    /* Whether this thread waits for a call already, or makes one. */
    bool calling() const
    {
        const std::thread::id me = std::this_thread::get_id();
        std::lock_guard<std::mutex> hold(s->mutex);
        return s->thread.get_id() == me ||
               std::any_of(s->turns.begin(), s->turns.end(), [&](const Job *job) { return job->by == me; });
    }

    /* Waits for `done`, and, with `raised`, for signals. */
    template <class Done>
    void wait(std::unique_lock<std::mutex> &hold, Unlocked &unlocked, std::optional<nb::python_error> *raised,
              bool until_raised, const Done &done)
    {
        while (!s->changed.wait_for(hold, std::chrono::milliseconds(50), done)) {
            if (raised == nullptr || *raised)
                continue;
            hold.unlock();
            const bool now = unlocked.signalled(*raised);
            hold.lock();
            if (now && until_raised)
                return;
            if (now)
                s->stop = 1;
        }
    }

    void make(Job &job, std::optional<nb::python_error> *raised)
    {
        Unlocked unlocked;
        std::unique_lock<std::mutex> hold(s->mutex);
        s->turns.push_back(&job);
        wait(hold, unlocked, raised, true, [&] { return s->turns.front() == &job; });
        if (raised == nullptr || !*raised) {
            exits->begin(&s->stop);
            s->job = &job;
            s->changed.notify_all();
            wait(hold, unlocked, raised, false, [&] { return s->job == nullptr; });
            exits->end(&s->stop);
            if (raised != nullptr && *raised)
                s->stop = 0; /* the call may have been done by then, and the next one is not to end for it */
        }
        s->turns.erase(std::find(s->turns.begin(), s->turns.end(), &job));
        s->changed.notify_all();
    }

    static void serve(State &s)
    {
        std::unique_lock<std::mutex> hold(s.mutex);
        for (;;) {
            s.changed.wait(hold, [&] { return s.quit || s.job != nullptr; });
            if (s.job == nullptr)
                return;
            Job &job = *s.job;
            hold.unlock();
            job.status = (*job.call)();
            if (job.status != GS_OK)
                job.error = last_error();
            hold.lock();
            s.job = nullptr;
            s.changed.notify_all();
        }
    }

    State *const s;
    const unsigned born;
};

#endif /* GS_PYTHON_CALLER_H */
