/* tiny_program.h - a program of parameters alone, for the tests of this room. */
#ifndef GS_TESTS_TINY_PROGRAM_H
#define GS_TESTS_TINY_PROGRAM_H

#include "program/program.h"

/* [5, 7] uniform, [5] zero, [3, 5] uniform, [11] uniform: sizes that are no multiple of 16. */
static gs_param tiny_param[] = {
    {.name = "convs.0.lin.weight", .dims = 2, .rows = 5, .cols = 7},
    {.name = "convs.0.bias", .dims = 1, .rows = 1, .cols = 5, .initial = {GS_INITIAL_FILL, 0}},
    {.name = "convs.1.lin.weight", .dims = 2, .rows = 3, .cols = 5},
    {.name = "convs.1.att", .dims = 1, .rows = 1, .cols = 11},
};
static const gs_program tiny_program = {.params = 4, .param = tiny_param, .logits = GS_NONE};

#endif /* GS_TESTS_TINY_PROGRAM_H */
