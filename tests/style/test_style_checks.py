#!/usr/bin/env python3
"""Do the style checks catch what they are there for? Each test plants one fault
in a small tree that is otherwise clean."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import check_circles  # noqa: E402
import check_includes  # noqa: E402
import check_pages  # noqa: E402
import check_shape  # noqa: E402
import check_words  # noqa: E402

TABLE = """# Rooms

| rank | room | may include | knows |
|---|---|---|---|
| 0 | `src/gnnstream.h`, `src/base` | – | a |
| 1 | `src/store` | base | b |
| 1 | `src/mem` | base | c |
| 2 | `partition` | base store | p |
| 4 | `src/schedule` | base mem, `store/chunk_table.h` | d |
| 4 | `cuda` | base mem | e |
| 5 | `src/train` | everything above but cuda | f |
| 6 | `tools` | `gnnstream.h` | g |

| word | meaning | in names of |
|---|---|---|
| *ring* | memory | `store`; `GS_BELL_RING` |
| *draft*, *seal* | staging folder, checksum line | – |
"""


def header(guard):
    return f"/* what */\n#ifndef {guard}\n#define {guard}\n#endif\n"


CLEAN = {
    "src/README.md": TABLE,
    "src/gnnstream.h": "/* api */\n#ifndef GS_GNNSTREAM_H\n#define GS_GNNSTREAM_H\n#include <stdint.h>\n#endif\n",
    "src/base/alloc.h": header("GS_BASE_ALLOC_H"),
    "src/base/alloc.c": '#include "base/alloc.h"\n#include <stdlib.h>\n',
    "src/store/chunk_table.h": header("GS_STORE_CHUNK_TABLE_H"),
    "src/store/store_internal.h": header("GS_STORE_STORE_INTERNAL_H"),
    "src/store/store.c": '#include "store/store_internal.h"\n#include "base/alloc.h"\n',
    "src/mem/mem.c": '/* x */\n#include "base/alloc.h"\n',
    "src/schedule/order.c": '#include "store/chunk_table.h"\n#include "base/alloc.h"\n',
    "src/train/api.c": '#include "gnnstream.h"\n#include "partition/sort.h"\n#include <cjson/cJSON.h>\n',
    "partition/sort.c": '#include "base/alloc.h"\n#include "partition/sort.h"\n',
    "partition/sort.h": header("GS_PARTITION_SORT_H"),
    "tools/main.c": '#include "gnnstream.h"\n#include "options.h"\n',
    "tools/options.h": "/* x */\n",
    "cuda/launch.cu": '#include "mem/slot.h"\n',
    "tests/base/test_alloc.c": '#include "store/store_internal.h"\n',
}


def body(lines):
    """A function whose braces span `lines` lines."""
    return "static int f(int a, int (*g)(int))\n{\n" + "    a++; /* { */\n" * (lines - 2) + "}\n"


class StyleTest(unittest.TestCase):
    mode = 0o755  # of the files

    def faults(self, checker, changes=None):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in {**CLEAN, **(changes or {})}.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text, encoding="utf-8")
                    (root / name).chmod(self.mode)
            return [f"{p.relative_to(root)}:{n}: {m}" for p, n, m in checker.check(root)]

    def only(self, checker, changes, place, part):
        """Exactly one fault, at `place`, that says `part`."""
        faults = self.faults(checker, changes)
        self.assertEqual(len(faults), 1, faults)
        self.assertTrue(faults[0].startswith(place + ": "), faults)
        self.assertIn(part, faults[0])

    def test_clean_tree_has_no_faults(self):
        self.assertEqual(self.faults(check_includes), [])
        self.assertEqual(self.faults(check_shape), [])
        self.assertEqual(self.faults(check_circles), [])
        self.assertEqual(self.faults(check_pages), [])
        self.assertEqual(self.faults(check_words), [])


class WordsTest(StyleTest):
    def test_names_with_a_word_of_another_meaning(self):
        self.only(check_words, {"src/base/b.c": "\nint gs_rings;\n"}, "src/base/b.c:2", 'gs_rings: "ring"')
        self.only(check_words, {"src/base/draft.c": "int a;\n"}, "src/base/draft.c:1", 'draft: "draft"')
        self.only(check_words, {"src/store/s.c": "int gs_ring, GS_SEAL;\n"}, "src/store/s.c:1", 'GS_SEAL: "seal"')
        fine = "/* gs_ring */\nint gs_string, gs_wiring, GS_BELL_RING;\n"
        self.assertEqual(self.faults(check_words, {"src/base/b.c": fine}), [])


class IncludesTest(StyleTest):
    def planted(self, name, text, line, part):
        self.only(check_includes, {name: text}, f"{name}:{line}", part)

    def test_upward_arrow(self):
        self.planted("src/base/alloc.c", '/* a\n */\n#include "store/chunk_table.h"\n', 3,
                     "base may not include store/chunk_table.h")

    def test_sideways_arrow(self):
        self.planted("src/mem/mem.c", '#include "store/chunk_table.h"\n', 1, "mem may not include")

    def test_angle_brackets_do_not_hide_it(self):
        self.planted("src/mem/mem.c", "#  include <store/chunk_table.h>\n", 1, "mem may not include")

    def test_single_header_permission_is_for_that_header(self):
        self.planted("src/schedule/order.c", '#include "store/store.h"\n', 1, "schedule may not include store/store.h")

    def test_internal_header_of_another_room(self):
        self.planted("src/train/api.c", '#include "store/store_internal.h"\n', 1, "is for store and its tests only")

    def test_public_header_is_for_every_room(self):
        self.assertEqual(self.faults(check_includes, {"src/store/store.c": '#include "gnnstream.h"\n'}), [])

    def test_tools_include_nothing_below_the_api(self):
        self.planted("tools/main.c", '#include "gnnstream.h"\n#include "base/alloc.h"\n', 2, "tools may not include")

    def test_cuda_knows_nothing_above_device(self):
        self.planted("cuda/launch.cu", '#include "train/loss.h"\n', 1, "cuda may not include")

    def test_room_beside_src(self):
        self.planted("partition/sort.c", '#include "train/loss.h"\n', 1, "partition may not include train/loss.h")
        self.planted("partition/sort.c", '#include "sort.h"\n', 1, "not named by its room")

    def test_everything_above_but_one(self):
        self.planted("src/train/api.c", '#include "cuda/launch.h"\n', 1, "train may not include cuda/launch.h")

    def test_public_header_stands_alone(self):
        self.planted("src/gnnstream.h", '/* x */\n#include "base/status.h"\n', 2, "must stand alone")
        self.planted("src/gnnstream_b.h", '/* x */\n#include "base/status.h"\n', 2, "must stand alone")

    def test_public_header_has_parts(self):
        part = "/* api */\n#ifndef GS_GNNSTREAM_B_H\n#define GS_GNNSTREAM_B_H\n#endif\n"
        whole = CLEAN["src/gnnstream.h"].replace("<stdint.h>", '"gnnstream_b.h"')
        self.assertEqual(self.faults(check_includes, {"src/gnnstream.h": whole, "src/gnnstream_b.h": part}), [])

    def test_rooms_include_parts_and_tools_the_whole(self):
        self.assertEqual(self.faults(check_includes, {"src/store/store.c": '#include "gnnstream_b.h"\n'}), [])
        self.planted("src/store/store.c", '#include "gnnstream-b.h"\n', 1, "not named by its room")
        self.planted("tools/main.c", '#include "gnnstream_b.h"\n', 1, "is not a header of tools")

    def test_header_without_its_room(self):
        self.planted("src/store/store.c", '#include "store_internal.h"\n', 1, "not named by its room")

    def test_room_outside_the_table(self):
        self.planted("src/extra/extra.c", '#include "base/alloc.h"\n', 1, "not in the table")

    def test_unknown_folder(self):
        self.planted("src/store/store.c", '#include "nowhere/x.h"\n', 1, "in no room of the table")

    def test_comments_and_strings_are_no_includes(self):
        text = '/*\n#include "train/a.h"\n*/\n// #include "train/a.h"\nconst char *s = "/*";\n#include "base/alloc.h"\n'
        self.assertEqual(self.faults(check_includes, {"src/store/store.c": text}), [])

    def test_include_after_a_string_like_a_comment(self):
        self.planted("src/store/store.c", 'const char *s = "/*";\n#include "train/a.h"\n/* */\n', 2, "may not include")

    def test_table_with_an_upward_row(self):
        table = TABLE.replace("| `src/store` | base |", "| `src/store` | base mem |")
        self.planted("src/README.md", table, 6, "no room above it")

    def test_missing_table(self):
        faults = self.faults(check_includes, {"src/README.md": "# nothing\n"})
        self.assertTrue(faults[0].startswith("src/README.md:1: no room table"), faults)


class ShapeTest(StyleTest):
    def planted(self, name, text, line, part, **others):
        self.only(check_shape, {name: text, **others}, f"{name}:{line}", part)

    def test_sixty_lines_are_fine(self):
        self.assertEqual(self.faults(check_shape, {"src/mem/mem.c": "/* x */\n" + body(60)}), [])

    def test_script_that_cannot_be_run(self):
        self.mode = 0o644
        self.planted("bench/run.py", "#!/usr/bin/env python3\n", 1, "chmod +x")

    def test_long_function(self):
        self.planted("src/mem/mem.c", "/* x */\n" + body(61), 3, "f() has 61 lines")

    def test_long_function_after_others(self):
        text = '#include "a.h"\n#define M(x) { \\\n  x\nstruct s { int a; };\nint t[] = { 1, 2 };\n' \
               'char c = \'{\';\nint g(void) { return 1; }\n' + body(70)
        self.planted("src/mem/mem.c", text, 9, "f() has 70 lines")

    def test_allowed_long_function(self):
        changes = {"src/mem/mem.c": "/* x */\n" + body(61),
                   "tests/style/long_functions.txt": "# list\nsrc/mem/mem.c f a flat switch\n"}
        self.assertEqual(self.faults(check_shape, changes), [])

    def test_allowed_without_a_reason(self):
        changes = {"tests/style/long_functions.txt": "src/mem/mem.c f\n"}
        self.only(check_shape, changes, "tests/style/long_functions.txt:1", "REASON")

    def test_allowed_but_not_long(self):
        changes = {"tests/style/long_functions.txt": "src/mem/mem.c f because\n"}
        self.only(check_shape, changes, "tests/style/long_functions.txt:1", "is not long")

    def test_unbalanced_braces(self):
        self.planted("src/mem/mem.c", "/* x */\nint f(void)\n{\n", 3, "braces do not match")

    def test_long_file(self):
        self.planted("tests/mem/test_mem.c", "int x;\n" * 901, 901, "901 lines")
        self.assertEqual(self.faults(check_shape, {"tests/mem/test_mem.c": "int x;\n" * 900}), [])

    def test_wide_lines(self):
        self.planted("src/mem/mem.c", "/* x */\n/*" + 117 * "x" + "*/\n", 2, "121 columns")
        self.planted("src/mem/meson.build", 121 * "x" + "\n", 1, "121 columns")
        self.planted("bench/run.sh", "# x\n" + 121 * "x", 2, "121 columns")
        self.planted("bench/run.py", 121 * "x", 1, "121 columns")
        self.planted("tools/check", "#!/bin/sh\n" + 130 * "x", 2, "130 columns")

    def test_what_may_be_wide(self):
        wide = 121 * "x" + "\n"
        fine = {"src/mem/mem.c": "/* x */\n/*" + 116 * "ö" + "*/\n", "src/model/zoo/a.gnn": wide, "tests/a.xml": wide,
                "tests/data/list": wide}
        self.assertEqual(self.faults(check_shape, fine), [])

    def test_same_name_twice(self):
        self.planted("src/store/alloc.c", "/* x */\n", 1, "there is a alloc.c already: src/base/alloc.c")

    def test_wrong_guard(self):
        self.planted("src/base/alloc.h", header("GS_ALLOC_H"), 1, "not GS_BASE_ALLOC_H")

    def test_missing_guard(self):
        self.planted("src/base/alloc.h", "/* x */\nint a;\n", 1, "not GS_BASE_ALLOC_H")

    def test_header_without_a_comment(self):
        self.planted("src/base/alloc.h", header("GS_BASE_ALLOC_H").split("\n", 1)[1], 1, "opens with the question")

    def test_source_that_opens_with_code(self):
        self.planted("src/mem/mem.c", "int x;\n", 1, "opens with neither")


def calling(name, *callees):
    """A file that defines name() and calls the others there."""
    return f"/* x */\nint {name}(int a)\n{{\n" + "".join(f"    a += {c}(a);\n" for c in callees) + "    return a;\n}\n"


class CirclesTest(StyleTest):
    CIRCLE = {"src/mem/one.c": calling("gs_one", "gs_two"), "src/mem/two.c": calling("gs_two", "gs_three"),
              "src/mem/three.c": calling("gs_three", "gs_one")}
    LIST = "tests/style/call_circles.txt"
    LINE = "src/mem/one.c src/mem/three.c src/mem/two.c: they descend one tree\n"

    def test_one_way_is_fine(self):
        self.assertEqual(self.faults(check_circles, {**self.CIRCLE, "src/mem/three.c": calling("gs_three")}), [])

    def test_circle(self):
        self.only(check_circles, self.CIRCLE, "src/mem/one.c:4",
                  "one.c:4 calls gs_two() of src/mem/two.c; src/mem/two.c:4 calls gs_three() of src/mem/three.c; "
                  "src/mem/three.c:4 calls gs_one()")

    def test_listed_circle(self):
        self.assertEqual(self.faults(check_circles, {**self.CIRCLE, self.LIST: "# why\n" + self.LINE}), [])

    def test_circle_that_outgrew_its_line(self):
        grown = {"src/mem/two.c": calling("gs_two", "gs_three", "gs_four"),
                 "src/mem/four.c": calling("gs_four", "gs_two")}
        faults = self.faults(check_circles, {**self.CIRCLE, **grown, self.LIST: self.LINE})
        self.assertEqual(len(faults), 2, faults)
        self.assertIn("4 files call each other", faults[0])
        self.assertIn("are no circle (any more)", faults[1])

    def test_circle_between_rooms_cannot_be_listed(self):
        changes = {"src/mem/one.c": calling("gs_one", "gs_two"), "src/store/two.c": calling("gs_two", "gs_one"),
                   self.LIST: "src/mem/one.c src/store/two.c: because\n"}
        self.only(check_circles, changes, "src/mem/one.c:4", "of rooms mem and store")

    def test_folders_of_a_room_are_that_room(self):
        changes = {"src/mem/one.c": calling("gs_one", "gs_two"), "src/mem/low/two.c": calling("gs_two", "gs_one"),
                   self.LIST: "src/mem/low/two.c src/mem/one.c: because\n"}
        self.assertEqual(self.faults(check_circles, changes), [])

    def test_functions_in_a_table_are_calls(self):
        table = "static const ops table = {.two = gs_two};\n"
        changes = {"src/mem/one.c": "/* a\n */\n" + table + "int gs_one(void)\n{\n    return table.two();\n}\n",
                   "src/mem/two.c": calling("gs_two", "gs_one")}
        self.only(check_circles, changes, "src/mem/one.c:3", "calls gs_two()")
        apart = {**changes, "src/mem/one.c": table + calling("gs_one")}
        self.assertEqual(self.faults(check_circles, apart), [])

    def test_files_whose_functions_are_no_circle(self):
        changes = {"src/mem/one.c": calling("gs_one", "gs_two") + calling("gs_low"),
                   "src/mem/two.c": calling("gs_two", "gs_low")}
        self.assertEqual(self.faults(check_circles, changes), [])

    def test_circle_by_a_static_function(self):
        inner = "static int inner(void)\n{\n    return gs_two();\n}\n"
        changes = {"src/mem/one.c": "/* a\n */\n" + inner + calling("gs_one", "inner"),
                   "src/mem/two.c": calling("gs_two", "gs_one")}
        self.only(check_circles, changes, "src/mem/one.c:5", "calls inner() of src/mem/one.c")

    def test_recursion_within_a_file_is_fine(self):
        self.assertEqual(self.faults(check_circles, {"src/mem/one.c": calling("gs_one", "gs_one")}), [])

    def test_what_is_no_call(self):
        for text in ("/* gs_two() */\n" + calling("gs_one"), calling("gs_one") + 'const char *s = "gs_two";\n',
                     calling("gs_one") + "static " + calling("gs_two").split("\n", 1)[1]):
            changes = {"src/mem/one.c": text, "src/mem/two.c": calling("gs_two", "gs_one")}
            self.assertEqual(self.faults(check_circles, changes), [], text)

    def test_line_without_a_reason(self):
        self.only(check_circles, {self.LIST: "src/mem/one.c src/mem/two.c\n"}, self.LIST + ":1", "REASON")

    def test_line_that_is_not_needed(self):
        self.only(check_circles, {self.LIST: self.LINE}, self.LIST + ":1", "take the line out")


class PagesTest(StyleTest):
    def test_front_page(self):
        self.only(check_pages, {"README.md": "word " * 1201}, "README.md:1", "1201 words")
        self.assertEqual(self.faults(check_pages, {"README.md": "word " * 1200}), [])

    def test_long_paragraph(self):
        self.only(check_pages, {"docs/design.md": "# x\n\n" + "line\n" * 9}, "docs/design.md:3", "9 lines")
        fine = "line\n" * 8 + "\n" + "    code\n" * 9 + "\n```\n" + "code\n" * 9 + "```\n"
        self.assertEqual(self.faults(check_pages, {"docs/design.md": fine}), [])

    def test_a_test_that_is_not_there(self):
        files = {"docs/design/faults.md": "| a | b | `test_one__x`, `room/two`, `cli/x/three` |\n",
                 "tests/room/test_two.c": "", "tests/room/a.c": "test_one__x", "tests/cli/x/three.sh": ""}
        self.assertEqual(self.faults(check_pages, files), [])
        page = "docs/design/faults.md:1"
        self.only(check_pages, {**files, "tests/room/a.c": "test_one__xy"}, page, "names test_one__x")
        files.pop("tests/cli/x/three.sh")
        self.only(check_pages, files, page, "names cli/x/three")

    def test_link_to_nothing(self):
        self.only(check_pages, {"docs/a.md": "\n[b](b.md#c)\n"}, "docs/a.md:2", "leads to b.md")
        self.assertEqual(self.faults(check_pages, {"docs/a.md": "[a](a.md) [c](#c) [d](https://d.example/e)\n"}), [])


if __name__ == "__main__":
    unittest.main()
