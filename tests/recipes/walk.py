"""walk.py BUILD SOURCE RECIPE MOST [TEST...]: walks a recipe of CONTRIBUTING.md.

tests/recipes/RECIPE.patch is what one who follows the recipe would change: it adds one trivial thing, with its test
and its page. It is applied to copies of the files that it touches, MOST at most, in BUILD/recipes/RECIPE. What depends
on them is compiled without optimisation and linked with the other objects of BUILD, as `gnnstream` and as the test
programs of the patch. Then the tests that the patch touches run, and the test programs TEST: test programs, cases of
tests/cli, and tests/recipes/RECIPE.sh where it is there, in an empty folder, with `gnnstream` on its PATH.

A hunk goes where its old lines are, once, wherever that is in the file. A patch that no longer applies is to be made
again by following the recipe: that the words still hold is what is tested here.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

# A test program with nothing but the library in it: its line of the linker has all that a program needs.
PLAIN_PROGRAM = 'tests/partition/test_partition_folders'


class Wrong(Exception):
    pass


# -- the patch ------------------------------------------------------------------------------------


def read_patch(text):
    """{path: [(old lines, new lines)]}; old is None for a new file."""
    files, hunks, made = {}, None, False
    for line in text.splitlines():
        if line.startswith('--- '):
            made = line.startswith('--- /dev/null')
        elif line.startswith('+++ '):
            hunks = files.setdefault(line[4:].split('\t')[0].removeprefix('b/'), [])
        elif line.startswith('@@'):
            hunks.append((None if made else [], []))
        elif hunks and line[:1] in (' ', '-', '+', ''):
            old, new = hunks[-1]
            if line[:1] != '+' and old is not None:
                old.append(line[1:])
            if line[:1] != '-':
                new.append(line[1:])
    return files


def apply_hunk(lines, old, new, path):
    at = [i for i in range(len(lines) - len(old) + 1) if lines[i:i + len(old)] == old]
    if len(at) != 1:
        raise Wrong(f'{path}: the lines that the patch changes are there {len(at)} times, not once; follow the recipe '
                    'again and keep the patch:\n' + '\n'.join(old))
    return lines[:at[0]] + new + lines[at[0] + len(old):]


def apply_patch(files, source, overlay):
    for path, hunks in files.items():
        before = source / path
        lines = before.read_text().splitlines() if before.exists() else []
        for old, new in hunks:
            if (old is None) == before.exists():
                raise Wrong(f'{path}: is there' if old is None else f'{path}: is not there')
            lines = apply_hunk(lines, old or [], new, path)
        (overlay / path).parent.mkdir(parents=True, exist_ok=True)
        (overlay / path).write_text('\n'.join(lines) + '\n')


# -- what to compile ------------------------------------------------------------------------------


class Tree:
    """The build folder's commands, and the changed files that go before its own."""

    def __init__(self, build, source, overlay, changed):
        self.build, self.source, self.overlay, self.changed = build, source, overlay, set(changed)
        self.entries = json.loads((build / 'compile_commands.json').read_text())
        self.deps = self.read_deps()

    def ninja(self, *words):
        done = subprocess.run(['ninja', '-C', self.build, '-t', *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Wrong(done.stderr)
        return done.stdout

    def relative(self, path):
        """The path from the source root, of one that is from the build folder; None for what is elsewhere."""
        whole = os.path.normpath(os.path.join(self.build, path))
        root = str(self.source) + os.sep
        return whole[len(root):] if whole.startswith(root) else None

    def read_deps(self):
        deps, current = {}, None
        for line in self.ninja('deps').splitlines():
            if line.startswith('    '):
                current.add(self.relative(line.strip()))
            elif ': #deps' in line:
                current = deps.setdefault(line.split(':')[0], set())
        return deps

    def is_of(self, entry, folders):
        return any(entry['output'].startswith(f) for f in folders)

    def affected(self, folders):
        """(entry, source) of all objects below `folders` that the changed files are in, new ones with a neighbour's."""
        entries = [e for e in self.entries if self.is_of(e, folders)]
        own = {self.relative(e['file']) for e in entries}
        out = []
        for e in entries:
            path = self.relative(e['file'])
            if path in self.changed or self.deps.get(e['output'], set()) & self.changed:
                out.append((e, path))
        for path in sorted(self.changed - own):
            near = [e for e in entries if path.endswith('.c')
                    and os.path.dirname(self.relative(e['file']) or '') == os.path.dirname(path)]
            if near:
                out.append((near[0], path))
        return out

    def compile(self, entry, path):
        words = shlex.split(entry['command'])
        out = str(self.overlay / 'objects' / (Path(entry['output']).parent.name + '_' + path.replace('/', '_') + '.o'))
        kept, skip = [], False
        for word in words[:words.index('-c')]:
            if skip or word == '-MD':
                skip = False
            elif word in ('-MQ', '-MF', '-o'):
                skip = True
            else:
                inside = self.relative(word[2:]) if word.startswith('-I') else None
                if word in ('-I..', '-I../') or inside is not None:
                    kept.append(f'-I{self.overlay / (inside or "")}')
                kept.append(word)
        at = self.overlay / path if path in self.changed else self.source / path
        # ccache does not notice that a header is found in another folder than before
        done = subprocess.run([*kept, '-O0', '-o', out, '-c', str(at)], cwd=self.build, capture_output=True, text=True,
                              env=dict(os.environ, CCACHE_DISABLE='1'))
        if done.returncode != 0:
            raise Wrong(done.stderr)
        return out

    def link_words(self, target):
        return shlex.split(self.ninja('commands', target).splitlines()[-1])

    def link(self, name, words, drop, add):
        """`words` is a command of a target that links the static library; `add` goes before all archives."""
        out = str(self.overlay / name)
        words = [w for w in words if w not in drop]
        words[words.index('-o') + 1] = out
        at = words.index('-Wl,--start-group')
        done = subprocess.run([*words[:at], *add, *words[at:]], cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise Wrong(done.stderr)
        return out


def compile_all(tree, folders):
    (tree.overlay / 'objects').mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: tree.compile(*job), tree.affected(folders)))


# -- programs and tests ---------------------------------------------------------------------------

LIBRARY = ('src/libgnnstream.', 'src/device/cpu/')


def make_program(tree, library):
    words = tree.link_words(PLAIN_PROGRAM)
    own = [w for w in words if w.startswith(PLAIN_PROGRAM)]
    tools = compile_all(tree, ('tools/libgnnstream_command.',))
    return tree.link('gnnstream', words, own[1:], [*tools, *library, 'tools/gnnstream.p/cli_start.c.o',
                                                  '-Wl,--start-group', 'tools/libgnnstream_command.a',
                                                  'src/libgnnstream.a', '-Wl,--end-group'])


def make_test(tree, path, library):
    """The program of tests/ROOM/test_x.c, or None where it is none."""
    own = [e for e in tree.entries if tree.relative(e['file']) == path]
    if not own:
        raise Wrong(f'{path}: no program of the build is made of it')
    folder = os.path.dirname(own[0]['output']) + '/'
    target = folder.removesuffix('.p/')
    words = tree.link_words(target)
    if 'src/libgnnstream.a' not in words:
        raise Wrong(f'{path}: its program does not link the library statically; choose another test')
    archives = tuple(w + '.p/' for w in words if w.startswith('tests/') and w.endswith('.a'))
    objects = compile_all(tree, (folder, *archives))
    drop = {e['output'] for e, _ in tree.affected((folder,))}
    return tree.link(os.path.basename(target), words, drop, [*objects, *library])


def run(words, folder, overlay):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = dict(os.environ, PATH=f'{overlay}:{os.environ["PATH"]}', GNNSTREAM=str(overlay / 'gnnstream'))
    done = subprocess.run([str(w) for w in words], cwd=folder, env=env)
    shutil.rmtree(folder, ignore_errors=True)
    if done.returncode != 0:
        raise Wrong(f'{" ".join(str(w) for w in words)}: ended with {done.returncode}')


def walk(build, source, recipe, most, besides):
    overlay = build / 'recipes' / recipe
    shutil.rmtree(overlay, ignore_errors=True)
    overlay.mkdir(parents=True)
    files = read_patch((source / 'tests/recipes' / f'{recipe}.patch').read_text())
    if not files or len(files) > most:
        raise Wrong(f'{recipe}.patch: touches {len(files)} files; the recipe says at most {most}')
    apply_patch(files, source, overlay)
    for path in files:
        if path.endswith('.h'):  # headers beside it include it by its bare name, and find what is beside them first
            for beside in (source / path).parent.glob('*.h'):
                if not (overlay / path).with_name(beside.name).exists():
                    shutil.copy(beside, (overlay / path).parent)
    tree = Tree(build, source, overlay, files)
    library = compile_all(tree, LIBRARY)
    make_program(tree, library)
    tests = 0
    for path in [*files, *besides]:
        if re.fullmatch(r'tests/.*/test_\w+\.c', path):
            run([make_test(tree, path, library)], overlay / 'run', overlay)
        elif re.fullmatch(r'tests/cli/.*\.sh', path):
            for beside in (source / path).parent.glob(Path(path).stem + '.*'):  # what it expects, as it was
                if not (overlay / path).with_name(beside.name).exists():
                    shutil.copy(beside, (overlay / path).parent)
            run(['bash', source / 'tests/cli/run.sh', overlay / path], overlay / 'run', overlay)
        else:
            continue
        tests += 1
    check = source / 'tests/recipes' / f'{recipe}.sh'
    if check.exists():
        run(['bash', '-eu', check], overlay / 'run', overlay)
    elif tests == 0:
        raise Wrong(f'{recipe}.patch: brings no test that this runs, and there is no {recipe}.sh')


if __name__ == '__main__':
    try:
        walk(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
    except Wrong as e:
        sys.exit(str(e))
