/* zoo.c - any model with any switches against the float64 reference. */
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

#define SWITCHES_MOST 16u

static const unsigned all_parts[] = {1, 3, 8};

typedef struct switches {
    const char *name[SWITCHES_MOST];
    unsigned count;
} switches;

/* All `--no-...` that the engine lists, but --no-verify, which changes no number. */
static switches find_switches(void)
{
    switches s = {0};

    command("train --help-all");
    char *const help = strdup(command_output()), *rest = NULL;
    for (char *line = strtok_r(help, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "Not available", 13) == 0)
            break;
        if (strncmp(line, "  --no-", 7) != 0 || strncmp(line, "  --no-verify", 13) == 0)
            continue;
        if (s.count == SWITCHES_MOST)
            ref_die("more than %u switches: combinations need another round", SWITCHES_MOST);
        line[2 + strcspn(line + 2, " ")] = '\0';
        s.name[s.count++] = text("%s", line + 2);
    }
    free(help);
    if (s.count < 4)
        ref_die("no switches in gnnstream train --help-all");
    return s;
}

typedef struct zoo {
    const char *kind, *model, *method;
    switches switches;
    network network;
    learning learning;
    yardstick yardstick;
} zoo;

/* One run, with the switches whose bits are set. */
static void zoo_run(const zoo *z, unsigned parts, unsigned bits)
{
    const char *options = "";
    result r = {0};

    for (unsigned i = 0; i < z->switches.count; i++)
        if (bits >> i & 1)
            options = text("%s %s", options, z->switches.name[i]);
    if (strcmp(z->kind, "many") == 0 && (bits & 1) != 0) /* whatever is predicted to be faster */
        options = text("%s --products %s", options, (bits & 2) != 0 ? "pairs" : "runs");
    const char *const name = text("%s P=%u%s", z->model, parts, *options == '\0' ? " all on" : options);
    if (train(&r, "%s %s %s --init %s%s", store_of(z->kind, z->method, parts, ""), network_options(&z->network),
              learning_options(&z->learning), z->yardstick.init, options)) {
        same_results(&r, &z->yardstick.end, 2e-4, name);
        if (strstr(options, "--no-cache") != NULL)
            check(total(&r, "written_bytes") > 0, "%s: nothing was spilled", name);
    }
    result_free(&r);
}

/* The switches of round `j`: switch i is set where bit j of i is 0. Two different switches below 16 agree in round 4
 * and differ in some other, so with the complements they take all four pairs of values; and as each round comes with
 * its complement, so do a switch and its parts. */
static unsigned round_of(const switches *s, unsigned j)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < s->count; i++)
        bits |= (i >> j & 1) << i;
    return bits;
}

/* All on, all off, and runs in which any two of (parts, switches) take each of their values together: a round or its
 * complement, in turn over four models. Each off alone, in turn over eight. In a sanitized build one of the rounds, in
 * turn, sets each switch once. */
static void zoo_pairs(const zoo *z, unsigned number)
{
    const unsigned every = (1u << z->switches.count) - 1;

    for (unsigned j = 0; j < 5; j++) {
        const unsigned turn = sanitized() ? number / 4 : number + j;
        if (sanitized() && j != number % 4)
            continue;
        if (in_turn(0, turn, sanitized() ? 2 : 4))
            zoo_run(z, all_parts[j % 3], round_of(&z->switches, j));
        if (in_turn(1, turn, sanitized() ? 2 : 4))
            zoo_run(z, all_parts[(j + sanitized()) % 3], every & ~round_of(&z->switches, j));
    }
    if (sanitized())
        return;
    zoo_run(z, 8, 0);
    for (unsigned i = 0; i < z->switches.count; i++)
        if (in_turn(i, number, 8))
            zoo_run(z, all_parts[(i + 1) % 3], 1u << i);
}

static void zoo_product(const zoo *z)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned bits = 0; bits >> z->switches.count == 0; bits++)
            zoo_run(z, all_parts[i], bits);
}

/* Steps that move the weights well, but not so far that the next epochs blow up float32's rounding. */
static double rate_of(const char *model)
{
    static const char *const slow[] = {"gin", "ggnn", "gates", "walk"};

    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
        if (strcmp(slow[i], model) == 0)
            return 0.02;
    return 0.2;
}

/* pairs|many|product MODEL...: three SGD epochs from given weights, on a directed graph with self loops, parallel
 * edges, edge types and weights, and vertices without edges: logits and every weight agree, for 1, 3 and 8 parts and
 * with the engine's switches (--no-cache is what makes it spill). `many`: on edges of more types than a vertex has
 * edges, which must be multiplied by batches where nothing forbids it. */
void matrix_zoo(const arguments *a)
{
    const bool many = strcmp(a->word[0], "many") == 0;
    zoo z = {.kind = many ? "many" : "typed", .switches = find_switches()};

    for (int m = 1; m < a->count; m++) {
        z.model = a->word[m];
        z.network = network_of(z.model);
        z.method = method_of(z.model);
        /* The margin is float32's own error; among ten thousands of edge values some are always nearer than a few
         * times that. */
        z.learning = (learning){.optimizer = "sgd", .epochs = 3, .lr = rate_of(z.model), .margin = 1e-7};
        z.yardstick = reference_of(z.kind, &z.network, &z.learning);
        if (many && command("plan %s %s --json", store_of(z.kind, z.method, 3, ""), network_options(&z.network)))
            check(strstr(command_output(), "\"batches\":true") != NULL, "%s: no batches by type", z.model);
        if (strcmp(a->word[0], "product") == 0)
            zoo_product(&z);
        else
            zoo_pairs(&z, (unsigned)m);
        yardstick_free(&z.yardstick);
    }
}
